// Kernel "TopKRouter": a warp a token; the experts' tokens are counted on the way.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/moe_step.h"
#include "kernels/cuda/attention/run_counts.h"
#include "kernels/cuda/elementwise/elementwise_program.h"
#include "kernels/cuda/kernel_def.h"
#include "kernels/cuda/model/cross_entropy_launch.h"
#include "kernels/cuda/model/router_launch.h"

#include <utility>

#include <fmt/format.h>

namespace fuseline::cuda::kernels {

KernelDef top_k_router();

namespace {
namespace top_k_router_parts {

class RouterKernel final : public Kernel {
 public:
  RouterKernel(RouterStep step, Phase phase, const DeviceContext& device)
      : m(std::move(step)), m_phase(phase), m_device(device) {}

  void run(Pointers pointers, std::byte*) override {
    if (m_phase == Phase::Forward) return runForward(pointers);
    clear(m.dBias, pointers);
    if (m.dx && !m.dy) return clear(m.dx, pointers);
    if (!m.dx) return;
    RouterTask task = taskOf(pointers);
    task.chosen = countsAt(m.indices, pointers);
    task.dProbs = m.dy.at(pointers);
    task.dLogits = m.dx.at(pointers);
    launchRouterGradient(task, m_device.stream);
  }

 private:
  void runForward(Pointers pointers) const {
    clear(m.counts, pointers);
    RouterTask task = taskOf(pointers);
    task.bias = reinterpret_cast<const float*>(m.bias.at(pointers));
    task.probs = m.y.at(pointers);
    task.indices = reinterpret_cast<std::int64_t*>(m.indices.at(pointers));
    task.numTokens = reinterpret_cast<unsigned long long*>(m.counts.at(pointers));
    launchRouter(task, m_device.stream);
  }

  RouterTask taskOf(Pointers pointers) const {
    return {.logits = m.x.at(pointers),
            .element = elementOf(m.x.spec.dtype),
            .tokens = m.x.spec.rows(),
            .experts = static_cast<int>(m.x.spec.cols()),
            .topk = static_cast<int>(m.form.topk),
            .numGroups = static_cast<int>(m.form.numGroups),
            .groupTopk = static_cast<int>(m.form.groupTopk),
            .score = m.form.score,
            .isSoftmaxOfChosen = m.form.isSoftmaxOfChosen(),
            .choosesByScore = m.form.choosesByScore(),
            .normalizes = m.form.normalizes,
            .scalingFactor = m.form.scalingFactor};
  }

  /// Zeros of every dtype are the same bytes, and those of a tensor here are whole words or its elements.
  void clear(const Binding& binding, Pointers pointers) const {
    if (!binding) return;
    if (binding.spec.dtype == DType::I64)
      launchZeros(reinterpret_cast<float*>(binding.at(pointers)), 2 * binding.spec.numElements(), m_device.stream);
    else
      launchRounding(nullptr, binding.at(pointers), elementOf(binding.spec.dtype), binding.spec.numElements(),
                     m_device.stream);
  }

  RouterStep m;
  Phase m_phase;
  const DeviceContext& m_device;
};

Result<std::unique_ptr<Kernel>> compileRouter(const CompileRequest& request) {
  Result<RouterStep> step = routerStep(request);
  if (!step) return step.error();
  return std::unique_ptr<Kernel>(std::make_unique<RouterKernel>(std::move(*step), request.step.phase, request.device));
}

Verdict supports(const KernelQuery& query) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  const Node& node = query.graph.node(query.members[0]);
  const TensorSpec& x = query.graph.value(node.inputs[0]).spec;
  return x.rows() < kMost ? Verdict::yes() : Verdict::no("TopKRouter: x has 2^31 tokens or more.");
}

}  // namespace top_k_router_parts
}  // namespace

KernelDef top_k_router() {
  using namespace top_k_router_parts;
  return {
      .name = "TopKRouter",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = supports,
      .compile = compileRouter,
  };
}

}  // namespace fuseline::cuda::kernels
