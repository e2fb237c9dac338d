// Kernel "delayed_scaling_update": the scales of the next step for many tensors in one launch.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/step_operand.h"
#include "kernels/cuda/kernel_def.h"
#include "kernels/cuda/quantize/quantize_launch.h"

#include <algorithm>
#include <cmath>

namespace fuseline::cuda::kernels {

namespace {
namespace delayed_scaling_update_parts {

struct State {
  Binding scale;
  Binding history;
  float scaledLargest = 0.0F;
};

class ScaleUpdate final : public Kernel {
 public:
  ScaleUpdate(std::vector<State> states, bool takesMostRecent, Stream stream)
      : m_states(std::move(states)), m_takesMostRecent(takesMostRecent), m_stream(stream) {}

  void run(Pointers pointers, std::byte*) override {
    constexpr std::size_t kBatch = ScaleUpdates::kMaxStates;
    for (std::size_t first = 0; first < m_states.size(); first += kBatch)
      launchScaleUpdates(batch(first, std::min(first + kBatch, m_states.size()), pointers), m_stream);
  }

 private:
  ScaleUpdates batch(std::size_t first, std::size_t last, Pointers pointers) const {
    ScaleUpdates updates{.count = static_cast<int>(last - first),
                         .historyLength = static_cast<int>(m_states[first].history.spec.numElements()),
                         .takesMostRecent = m_takesMostRecent};
    for (std::size_t i = first; i < last; ++i) {
      updates.scales[i - first] = reinterpret_cast<float*>(m_states[i].scale.at(pointers));
      updates.histories[i - first] = reinterpret_cast<float*>(m_states[i].history.at(pointers));
      updates.scaledLargest[i - first] = m_states[i].scaledLargest;
    }
    return updates;
  }

  std::vector<State> m_states;
  bool m_takesMostRecent;
  Stream m_stream;
};

Result<std::unique_ptr<Kernel>> compile(const CompileRequest& request) {
  const ScaleUpdateWork& work = *request.step.scaleUpdate;
  std::vector<State> states;
  for (int i = 0; i < static_cast<int>(work.maxFinites.size()); ++i) {
    const Result<Binding> scale = requireOperand(request, {0, OperandKind::Parameter, i});
    if (!scale) return scale.error();
    const Result<Binding> history = requireOperand(request, {0, OperandKind::Residual, i});
    if (!history) return history.error();
    const float largest = work.maxFinites[static_cast<std::size_t>(i)] * std::ldexp(1.0F, -work.options.margin);
    states.push_back({.scale = *scale, .history = *history, .scaledLargest = largest});
  }
  return std::unique_ptr<Kernel>(
      std::make_unique<ScaleUpdate>(std::move(states), work.options.takesMostRecent, request.device.stream));
}

}  // namespace delayed_scaling_update_parts
}  // namespace

KernelDef delayed_scaling_update();

KernelDef delayed_scaling_update() {
  using namespace delayed_scaling_update_parts;
  return {
      .name = "delayed_scaling_update",
      .phases = {Phase::Forward, Phase::Backward},
      .compile = compile,
  };
}

}  // namespace fuseline::cuda::kernels
