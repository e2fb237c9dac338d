// Computes the table of angles, and rotates rows by it.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention/rotary_angles.h"

#include "core/ops/rotary_form.h"
#include "kernels/cpu/attention/attention_functions.h"

#include <cmath>

namespace fuseline::cpu {

RotaryAngles::RotaryAngles(const Attributes& attributes, std::int64_t length, std::int64_t kept, bool isBackward)
    : m_frequencies(rotaryFrequencies(attributes, length)),
      m_factor(rotaryAttentionFactor(attributes)),
      m_sign(isBackward ? -1.0 : 1.0),
      m_kept(kept) {
  m_table.resize(static_cast<std::size_t>(kept) * 2 * m_frequencies.size());
  for (std::int64_t position = 0; position < kept; ++position) compute(position, m_table.data() + offsetOf(position));
}

const float* RotaryAngles::at(std::int64_t position, float* own) const {
  if (position < m_kept) return m_table.data() + offsetOf(position);
  compute(position, own);
  return own;
}

void RotaryAngles::compute(std::int64_t position, float* angles) const {
  for (std::size_t m = 0; m < m_frequencies.size(); ++m) {
    const double angle = static_cast<double>(position) * m_frequencies[m];
    angles[m] = static_cast<float>(m_factor * std::cos(angle));
    angles[m_frequencies.size() + m] = static_cast<float>(m_sign * m_factor * std::sin(angle));
  }
}

HeadRotation::HeadRotation(const Attributes& attributes, std::int64_t tokens)
    : m_offset(rotaryForm(attributes).offset),
      m_channels(rotaryForm(attributes).dim),
      m_isInterleaved(rotaryForm(attributes).isInterleaved),
      m_forward(attributes, m_offset + tokens, m_offset + tokens, false),
      m_backward(attributes, m_offset + tokens, m_offset + tokens, true) {}

void HeadRotation::turnBy(const RotaryAngles& angles, float* rows, std::int64_t stride, std::int64_t numRows,
                          std::int64_t firstToken) const {
  const auto rotate = attentionFunctions().rotate;
  const auto pairs = static_cast<std::int64_t>(angles.numPairs());
  for (std::int64_t row = 0; row < numRows; ++row) {
    const float* const turns = angles.at(m_offset + firstToken + row, nullptr);
    rotate(rows + row * stride, 1, m_channels, pairs, m_isInterleaved, turns, turns + pairs);
  }
}

}  // namespace fuseline::cpu
