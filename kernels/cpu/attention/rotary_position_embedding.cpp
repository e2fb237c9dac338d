// Kernel "RotaryPositionEmbedding": one token after the other, all its heads by the same angles.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/rotary_step.h"
#include "kernels/cpu/attention/attention_functions.h"
#include "kernels/cpu/attention/rotary_angles.h"
#include "kernels/cpu/attention/split_rotary.h"
#include "kernels/cpu/kernel_def.h"

#include <algorithm>
#include <span>
#include <utility>

#include <omp.h>

namespace fuseline::cpu::kernels {

KernelDef rotary_position_embedding();

namespace {

/// Smallest number of elements for which another thread pays.
constexpr std::int64_t kElementsPerRotaryThread = 8192;

class RotaryKernel final : public Kernel {
 public:
  RotaryKernel(RotaryStep step, RotaryAngles angles, int threads)
      : m(std::move(step)), m_angles(std::move(angles)), m_threads(threads) {}

  std::size_t workspaceBytes() const override {
    return static_cast<std::size_t>(m_threads) * threadFloats() * sizeof(float);
  }

  void run(Pointers pointers, std::byte* workspace) override {
    const std::vector<std::int64_t> positions = positionsOf(pointers);
    const std::int64_t tokens = m.layout.batch * m.layout.tokens;
    const std::int64_t worth = tokens * width() / kElementsPerRotaryThread;
    const auto threads = static_cast<int>(std::clamp<std::int64_t>(worth, 1, m_threads));
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (std::int64_t token = 0; token < tokens; ++token)
      rotateToken(
          token, positions, pointers,
          reinterpret_cast<float*>(workspace) + static_cast<std::size_t>(omp_get_thread_num()) * threadFloats());
  }

 private:
  std::int64_t width() const { return m.layout.heads * m.layout.channels; }
  /// A token's heads and a vector behind them, and the angles of its position.
  std::size_t threadFloats() const {
    return static_cast<std::size_t>(headFloats()) +
           static_cast<std::size_t>(paddedWidth(static_cast<std::int64_t>(2 * m_angles.numPairs())));
  }
  std::int64_t headFloats() const { return paddedWidth(width()) + kLanePad; }

  /// Empty where a token's position is its index.
  std::vector<std::int64_t> positionsOf(Pointers pointers) const {
    if (!m.hasPositions()) return {};
    const auto counts = [&](const Binding& binding) {
      return std::span(reinterpret_cast<const std::int64_t*>(binding.at(pointers)),
                       binding ? static_cast<std::size_t>(binding.spec.numElements()) : 0);
    };
    return m.positions(counts(m.cuSeqlens), counts(m.startPositions));
  }

  void rotateToken(std::int64_t index, const std::vector<std::int64_t>& positions, Pointers pointers,
                   float* own) const {
    const std::int64_t entry = index / m.layout.tokens;
    const std::int64_t token = index % m.layout.tokens;
    const std::int64_t position =
        positions.empty() ? m.form.offset + token : positions[static_cast<std::size_t>(index)];
    const HeadRowFunctions& rows = headRowFunctions(m.from.spec.dtype);
    const auto headsOf = [&](const Binding& binding, const TokenLayout& layout) {
      return RowsOf{.data = binding.at(pointers) + layout.offset(entry, token, 0) * sizeBytes(binding.spec.dtype),
                    .stride = layout.headStride};
    };
    readHeads(rows, headsOf(m.from, m.fromLayout), own);
    if (position >= 0) {
      const float* const angles = m_angles.at(position, own + headFloats());
      attentionFunctions().rotate(own, m.layout.heads, m.layout.channels, m.form.numPairs(), m.form.isInterleaved,
                                  angles, angles + m_angles.numPairs());
    }
    writeHeads(rows, own, headsOf(m.to, m.toLayout));
  }

  /// Contiguous heads are one row. Whole vectors behind one head are in front of the next.
  void readHeads(const HeadRowFunctions& rows, RowsOf heads, float* own) const {
    const std::int64_t channels = m.layout.channels;
    if (m.fromLayout.hasContiguousHeads()) return rows.read(heads, 1, width(), 1.0F, own, paddedWidth(width()));
    rows.read(heads, m.layout.heads, channels, 1.0F, own, channels);
  }
  void writeHeads(const HeadRowFunctions& rows, const float* own, RowsOf heads) const {
    const std::int64_t channels = m.layout.channels;
    if (m.toLayout.hasContiguousHeads()) return rows.write(own, paddedWidth(width()), 1, width(), nullptr, 1.0F, heads);
    rows.write(own, channels, m.layout.heads, channels, nullptr, 1.0F, heads);
  }

  RotaryStep m;
  RotaryAngles m_angles;
  int m_threads;
};

Result<std::unique_ptr<Kernel>> compileRotary(const CompileRequest& request) {
  Result<RotaryStep> step = readRotary(request);
  if (!step) return step.error();
  const std::int64_t length = rotaryLength(step->form, step->layout);
  RotaryAngles angles(request.member(0).attributes, length, length, step->isBackward);
  return std::unique_ptr<Kernel>(
      std::make_unique<RotaryKernel>(std::move(*step), std::move(angles), request.settings.threads));
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
      .writesCopies = true,
      .writesGradientCopies = false,
  };
}

}  // namespace fuseline::cpu::kernels
