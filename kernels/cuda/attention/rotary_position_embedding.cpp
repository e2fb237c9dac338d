// Kernel "RotaryPositionEmbedding": turns pairs of channels by the positions of their tokens; backward turns them back.
// Sums of sequence lengths and start positions are data. They stay the same from run to run, as all that is bound to an
// executor: the host checks them in the first run.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/rotary_step.h"
#include "kernels/cuda/attention/rotary_launch.h"
#include "kernels/cuda/attention/rotary_turns.h"
#include "kernels/cuda/attention/run_counts.h"
#include "kernels/cuda/attention/split_rotary.h"
#include "kernels/cuda/elementwise/elementwise_launch.h"
#include "kernels/cuda/elementwise/elementwise_program.h"
#include "kernels/cuda/kernel_def.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace fuseline::cuda::kernels {

KernelDef rotary_position_embedding();

namespace {

class RotaryKernel final : public Kernel {
 public:
  RotaryKernel(RotaryStep step, const Attributes& attributes, const DeviceContext& device)
      : m(std::move(step)),
        m_frequencies(rotaryFrequencies(attributes, rotaryLength(m.form, m.layout))),
        m_factor(rotaryAttentionFactor(attributes)),
        m_device(device) {}

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
    if (std::exchange(m_isChecked, true) || !m.hasPositions()) return;
    m.positions(readCounts(m.cuSeqlens, pointers, m_device), readCounts(m.startPositions, pointers, m_device));
  }

  RotaryTask taskFor(Pointers pointers) const {
    const std::int64_t pairs = m.form.numPairs();
    const std::int64_t packetPairs = m.form.isInterleaved ? kVectorWidth / 2 : kVectorWidth;
    return {.from = m.from.at(pointers),
            .to = m.to.at(pointers),
            .element = elementOf(m.from.spec.dtype),
            .batch = m.layout.batch,
            .tokens = m.layout.tokens,
            .fromBatchStride = m.fromLayout.batchStride,
            .fromTokenStride = m.fromLayout.tokenStride,
            .fromHeadStride = m.fromLayout.headStride,
            .toBatchStride = m.toLayout.batchStride,
            .toTokenStride = m.toLayout.tokenStride,
            .toHeadStride = m.toLayout.headStride,
            .heads = m.layout.heads,
            .channels = m.layout.channels,
            .numPairs = pairs,
            .isInterleaved = m.form.isInterleaved,
            .isVectorized = pairs % packetPairs == 0 && m.layout.channels % kVectorWidth == 0 &&
                            (m.layout.channels - 2 * pairs) % kVectorWidth == 0,
            .cosineFactor = static_cast<float>(m_factor),
            .sineFactor = static_cast<float>(m.isBackward ? -m_factor : m_factor),
            .offset = m.form.offset,
            .sums = countsAt(m.cuSeqlens, pointers),
            .numSequences = m.cuSeqlens ? numSequences(m.cuSeqlens.spec) : 0,
            .starts = countsAt(m.startPositions, pointers)};
  }

  void addPairs(RotaryTask& task) const {
    task.pairs = static_cast<int>(std::min<std::int64_t>(RotaryTask::kMaxPairs, task.numPairs - task.firstPair));
    for (int pair = 0; pair < task.pairs; ++pair)
      task.turns[pair] = turnsOf(m_frequencies[static_cast<std::size_t>(task.firstPair + pair)]);
  }

  RotaryStep m;
  std::vector<double> m_frequencies;  // radians by position of each pair
  double m_factor;
  const DeviceContext& m_device;
  bool m_isChecked = false;
};

Result<std::unique_ptr<Kernel>> compileRotary(const CompileRequest& request) {
  Result<RotaryStep> step = readRotary(request);
  if (!step) return step.error();
  return std::unique_ptr<Kernel>(
      std::make_unique<RotaryKernel>(std::move(*step), request.member(0).attributes, request.device));
}

}  // namespace

KernelDef rotary_position_embedding() {
  return {
      .name = "RotaryPositionEmbedding",
      .phases = {Phase::Forward, Phase::Backward},
      .compile =
          [](const CompileRequest& request) {
            return request.step.copies.empty() ? compileRotary(request) : compileSplitRotary(request);
          },
      .supportsCopies = canQuantizeParts,
  };
}

}  // namespace fuseline::cuda::kernels
