// Kernel "MoEAuxLoss": the tokens of each expert are added up, then a launch for each layer.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/aux_loss_step.h"
#include "kernels/cuda/attention/run_counts.h"
#include "kernels/cuda/elementwise/elementwise_program.h"
#include "kernels/cuda/kernel_def.h"
#include "kernels/cuda/model/aux_loss_launch.h"

#include <utility>

namespace fuseline::cuda::kernels {

KernelDef moe_aux_loss();

namespace {

class AuxLossKernel final : public Kernel {
 public:
  AuxLossKernel(AuxLossStep step, Phase phase, Stream stream) : m(std::move(step)), m_phase(phase), m_stream(stream) {
    for (const AuxLossStep::Layer& layer : m.layers) m_numBlocks += auxLossBlocks(layer.logits.spec.rows());
  }

  /// The load, and forward a sum for each block.
  std::size_t workspaceBytes() const override {
    const std::int64_t sums = m_phase == Phase::Forward ? m_numBlocks : 0;
    return static_cast<std::size_t>(m.experts() + sums) * sizeof(double);
  }

  void run(Pointers pointers, std::byte* workspace) override {
    auto* const load = reinterpret_cast<double*>(workspace);
    for (std::size_t i = 0; i < m.layers.size(); ++i)
      launchAddedLoad(countsAt(m.layers[i].counts, pointers), load, static_cast<int>(m.experts()), i == 0, m_stream);
    m_phase == Phase::Forward ? runForward(pointers, load) : runBackward(pointers, load);
  }

 private:
  void runForward(Pointers pointers, double* load) const {
    double* const sums = load + m.experts();
    double* own = sums;
    for (const AuxLossStep::Layer& layer : m.layers) {
      AuxLossTask task = taskOf(layer, load, pointers);
      task.sums = own;
      launchAuxLoss(task, m_stream);
      own += auxLossBlocks(task.tokens);
    }
    launchAuxLossSum(sums, m_numBlocks, reinterpret_cast<float*>(m.y.at(pointers)), m_stream);
  }

  void runBackward(Pointers pointers, const double* load) const {
    for (const AuxLossStep::Layer& layer : m.layers) {
      if (!layer.dLogits) continue;
      AuxLossTask task = taskOf(layer, load, pointers);
      task.dLoss = reinterpret_cast<const float*>(m.dy.at(pointers));
      task.dLogits = layer.dLogits.at(pointers);
      launchAuxLossGradient(task, m_stream);
    }
  }

  AuxLossTask taskOf(const AuxLossStep::Layer& layer, const double* load, Pointers pointers) const {
    return {.logits = layer.logits.at(pointers),
            .element = elementOf(layer.logits.spec.dtype),
            .tokens = layer.logits.spec.rows(),
            .experts = static_cast<int>(m.experts()),
            .score = m.form.score,
            .loadFactor = m.form.loadFactor(m.experts(), m.tokens()),
            .zFactor = m.form.zFactor(m.tokens()),
            .load = load};
  }

  AuxLossStep m;
  Phase m_phase;
  Stream m_stream;
  std::int64_t m_numBlocks = 0;
};

Result<std::unique_ptr<Kernel>> compileAuxLoss(const CompileRequest& request) {
  Result<AuxLossStep> step = auxLossStep(request);
  if (!step) return step.error();
  return std::unique_ptr<Kernel>(
      std::make_unique<AuxLossKernel>(std::move(*step), request.step.phase, request.device.stream));
}

}  // namespace

KernelDef moe_aux_loss() {
  return {
      .name = "MoEAuxLoss",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = compileAuxLoss,
  };
}

}  // namespace fuseline::cuda::kernels
