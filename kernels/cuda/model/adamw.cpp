// Kernel "adamw": a launch that counts the update, and few for all parameters.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/adamw_step.h"
#include "kernels/cuda/elementwise/elementwise_program.h"
#include "kernels/cuda/kernel_def.h"
#include "kernels/cuda/model/adamw_launch.h"

#include <utility>

namespace fuseline::cuda::kernels {

namespace {
namespace adamw_parts {

class AdamWKernel final : public Kernel {
 public:
  AdamWKernel(AdamWStep step, int numMultiprocessors, Stream stream)
      : m_step(std::move(step)), m_numMultiprocessors(numMultiprocessors), m_stream(stream) {}

  std::size_t workspaceBytes() const override { return sizeof(AdamWCorrections<float>); }

  void run(Pointers pointers, std::byte* workspace) override {
    auto* const corrections = reinterpret_cast<AdamWCorrections<float>*>(workspace);
    launchAdamWBeginning({.numUpdates = reinterpret_cast<std::int64_t*>(m_step.numUpdates.at(pointers)),
                          .corrections = corrections,
                          .squares = reinterpret_cast<const float*>(m_step.gradientSquares.at(pointers)),
                          .options = m_step.options},
                         m_stream);
    std::vector<AdamWTask> tasks;
    for (const AdamWStep::Parameter& parameter : m_step.parameters)
      if (parameter.elements() > 0) tasks.push_back(taskOf(parameter, pointers));
    launchAdamW(tasks, m_step.terms(), corrections, m_numMultiprocessors, m_stream);
  }

 private:
  static AdamWTask taskOf(const AdamWStep::Parameter& parameter, Pointers pointers) {
    const Binding& weights = parameter.master ? parameter.master : parameter.weight;
    return {.weights = reinterpret_cast<float*>(weights.at(pointers)),
            .rounded = parameter.master ? parameter.weight.at(pointers) : nullptr,
            .gradients = parameter.gradient.at(pointers),
            .expAvg = reinterpret_cast<float*>(parameter.expAvg.at(pointers)),
            .expAvgSq = reinterpret_cast<float*>(parameter.expAvgSq.at(pointers)),
            .elements = parameter.elements(),
            .element = elementOf(parameter.weight.spec.dtype),
            .gradientElement = elementOf(parameter.gradient.spec.dtype),
            .clears = parameter.clearsGradient()};
  }

  AdamWStep m_step;
  int m_numMultiprocessors;
  Stream m_stream;
};

Result<std::unique_ptr<Kernel>> compile(const CompileRequest& request) {
  Result<AdamWStep> step = adamWStep(request);
  if (!step) return step.error();
  return std::unique_ptr<Kernel>(
      std::make_unique<AdamWKernel>(std::move(*step), request.device.numMultiprocessors, request.device.stream));
}

}  // namespace adamw_parts
}  // namespace

KernelDef adamw();

KernelDef adamw() {
  using namespace adamw_parts;
  return {
      .name = "adamw",
      .phases = {Phase::Optimizer},
      .compile = compile,
  };
}

}  // namespace fuseline::cuda::kernels
