// Kernel "grad_norm": few launches that add squares for all gradients, and one that adds their sums.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/adamw_step.h"
#include "kernels/cuda/elementwise/elementwise_program.h"
#include "kernels/cuda/kernel_def.h"
#include "kernels/cuda/model/adamw_launch.h"

#include <utility>

namespace fuseline::cuda::kernels {

namespace {
namespace grad_norm_parts {

class GradNormKernel final : public Kernel {
 public:
  GradNormKernel(GradNormStep step, Stream stream) : m_step(std::move(step)), m_stream(stream) {}

  std::size_t workspaceBytes() const override {
    return (m_step.shards.size() + m_step.wholes.size()) * kSquaresPerTask * sizeof(float);
  }

  void run(Pointers pointers, std::byte* workspace) override {
    auto* const sums = reinterpret_cast<float*>(workspace);
    std::vector<SquaresTask> tasks;
    for (const Binding& gradient : m_step.shards) tasks.push_back(taskOf(gradient, pointers));
    for (const Binding& gradient : m_step.wholes) tasks.push_back(taskOf(gradient, pointers));
    launchSquares(tasks, sums, m_stream);
    launchSumOfSquares(sums, sumsOf(m_step.shards.size()), sumsOf(tasks.size()),
                       reinterpret_cast<float*>(m_step.squares.at(pointers)), m_stream);
  }

 private:
  static std::int64_t sumsOf(std::size_t tasks) { return static_cast<std::int64_t>(tasks) * kSquaresPerTask; }

  static SquaresTask taskOf(const Binding& gradient, Pointers pointers) {
    return {.gradients = gradient.at(pointers),
            .elements = gradient.spec.numElements(),
            .element = elementOf(gradient.spec.dtype)};
  }

  GradNormStep m_step;
  Stream m_stream;
};

Result<std::unique_ptr<Kernel>> compile(const CompileRequest& request) {
  Result<GradNormStep> step = gradNormStep(request);
  if (!step) return step.error();
  return std::unique_ptr<Kernel>(std::make_unique<GradNormKernel>(std::move(*step), request.device.stream));
}

}  // namespace grad_norm_parts
}  // namespace

KernelDef grad_norm();

KernelDef grad_norm() {
  using namespace grad_norm_parts;
  return {
      .name = "grad_norm",
      .phases = {Phase::Optimizer},
      .compile = compile,
  };
}

}  // namespace fuseline::cuda::kernels
