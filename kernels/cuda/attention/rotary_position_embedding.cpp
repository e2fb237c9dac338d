// Kernel "RotaryPositionEmbedding": turns pairs of channels by the positions of their tokens; backward turns them back.
// Sums of sequence lengths and start positions are data. They stay the same from run to run, as all that is bound to an
// executor: the host checks them in the first run.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rotary_form.h"
#include "kernels/cuda/attention/rotary_launch.h"
#include "kernels/cuda/attention/rotary_turns.h"
#include "kernels/cuda/attention/run_counts.h"
#include "kernels/cuda/elementwise/elementwise_launch.h"
#include "kernels/cuda/elementwise/elementwise_program.h"
#include "kernels/cuda/kernel_def.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

namespace fuseline::cuda::kernels {

KernelDef rotary_position_embedding();

namespace {

struct RotaryParts {
  RotaryForm form;
  TokenLayout layout;
  Binding from, to, sums, starts;
  std::vector<double> frequencies;  // radians by position of each pair
  double factor = 1.0;
  bool isBackward = false;
};

class RotaryKernel final : public Kernel {
 public:
  RotaryKernel(RotaryParts parts, const DeviceContext& device) : m(std::move(parts)), m_device(device) {}

  void run(Pointers pointers, std::byte*) override {
    checkOnce(pointers);
    RotaryTask task = taskFor(pointers);
    do {
      addPairs(task);
      launchRotary(task, m_device.stream);
      task.firstPair += task.pairs;
      task.passesRest = false;
    } while (task.firstPair < task.numPairs);
  }

 private:
  void checkOnce(Pointers pointers) {
    if (std::exchange(m_isChecked, true) || (!m.sums && !m.starts)) return;
    const Result<std::vector<std::int64_t>> positions = rotaryPositions(
        m.form, m.layout, readCounts(m.sums, pointers, m_device), readCounts(m.starts, pointers, m_device));
    if (!positions) throw std::runtime_error(positions.error().message);
  }

  RotaryTask taskFor(Pointers pointers) const {
    const std::int64_t pairs = m.form.numPairs();
    const std::int64_t packetPairs = m.form.isInterleaved ? kVectorWidth / 2 : kVectorWidth;
    return {.from = m.from.at(pointers),
            .to = m.to.at(pointers),
            .element = elementOf(m.from.spec.dtype),
            .batch = m.layout.batch,
            .tokens = m.layout.tokens,
            .batchStride = m.layout.batchStride,
            .tokenStride = m.layout.tokenStride,
            .heads = m.layout.heads,
            .channels = m.layout.channels,
            .numPairs = pairs,
            .isInterleaved = m.form.isInterleaved,
            .isVectorized = pairs % packetPairs == 0 && m.layout.channels % kVectorWidth == 0 &&
                            (m.layout.channels - 2 * pairs) % kVectorWidth == 0,
            .cosineFactor = static_cast<float>(m.factor),
            .sineFactor = static_cast<float>(m.isBackward ? -m.factor : m.factor),
            .offset = m.form.offset,
            .sums = countsAt(m.sums, pointers),
            .numSequences = m.sums ? numSequences(m.sums.spec) : 0,
            .starts = countsAt(m.starts, pointers)};
  }

  void addPairs(RotaryTask& task) const {
    task.pairs = static_cast<int>(std::min<std::int64_t>(RotaryTask::kMaxPairs, task.numPairs - task.firstPair));
    for (int pair = 0; pair < task.pairs; ++pair)
      task.turns[pair] = turnsOf(m.frequencies[static_cast<std::size_t>(task.firstPair + pair)]);
  }

  RotaryParts m;
  const DeviceContext& m_device;
  bool m_isChecked = false;
};

Result<std::unique_ptr<Kernel>> compileRotary(const CompileRequest& request) {
  const bool isBackward = request.step.phase == Phase::Backward;
  const Attributes& attributes = request.member(0).attributes;
  RotaryParts parts{
      .form = rotaryForm(attributes), .factor = rotaryAttentionFactor(attributes), .isBackward = isBackward};
  const Result<TokenLayout> layout =
      rotaryLayout(parts.form, request.graph.inputSpecs(request.step.nodes.front()).front().shape);
  if (!layout) return layout.error();
  parts.layout = *layout;
  parts.frequencies = rotaryFrequencies(attributes, rotaryLength(parts.form, parts.layout));
  const Result<Binding> from =
      requireOperand(request, {0, isBackward ? OperandKind::GradOutput : OperandKind::Input, 0});
  if (!from) return from.error();
  const Result<Binding> to = requireOperand(request, {0, isBackward ? OperandKind::GradInput : OperandKind::Output, 0});
  if (!to) return to.error();
  parts.from = *from;
  parts.to = *to;
  parts.sums = findInput(request, parts.form.cuSeqlensSlot);
  parts.starts = findInput(request, parts.form.startPositionsSlot);
  return std::unique_ptr<Kernel>(std::make_unique<RotaryKernel>(std::move(parts), request.device));
}

}  // namespace

KernelDef rotary_position_embedding() {
  return {
      .name = "RotaryPositionEmbedding",
      .phases = {Phase::Forward, Phase::Backward},
      .supports = [](const KernelQuery&) { return Verdict::yes(); },
      .compile = compileRotary,
  };
}

}  // namespace fuseline::cuda::kernels
