// Sines and cosines of rotary embeddings by position.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/attributes.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fuseline::cpu {

/// In float32, computed in double precision. Those of positions that are known beforehand are kept.
class RotaryAngles {
 public:
  /// length: of sequences, on which frequencies may depend. kept: positions. isBackward: rotates back.
  RotaryAngles(const Attributes& attributes, std::int64_t length, std::int64_t kept, bool isBackward);

  std::size_t numPairs() const { return m_frequencies.size(); }
  /// Cosines, then sines. own: memory for those that are not kept.
  const float* at(std::int64_t position, float* own) const;

 private:
  std::size_t offsetOf(std::int64_t position) const {
    return static_cast<std::size_t>(position) * 2 * m_frequencies.size();
  }
  void compute(std::int64_t position, float* angles) const;

  std::vector<double> m_frequencies;
  double m_factor;
  double m_sign;
  std::int64_t m_kept;
  std::vector<float> m_table;
};

/// A rotary embedding of rows that attention reads: position is the token's index plus a fixed offset.
class HeadRotation {
 public:
  /// tokens: of a batch entry.
  HeadRotation(const Attributes& attributes, std::int64_t tokens);

  /// Rotates rows [numRows, stride] of one head, in place. firstToken: of the batch entry.
  void turn(float* rows, std::int64_t stride, std::int64_t numRows, std::int64_t firstToken) const {
    turnBy(m_forward, rows, stride, numRows, firstToken);
  }
  /// Rotates gradients back.
  void turnBack(float* rows, std::int64_t stride, std::int64_t numRows, std::int64_t firstToken) const {
    turnBy(m_backward, rows, stride, numRows, firstToken);
  }

 private:
  void turnBy(const RotaryAngles& angles, float* rows, std::int64_t stride, std::int64_t numRows,
              std::int64_t firstToken) const;

  std::int64_t m_offset;
  std::int64_t m_channels;
  bool m_isInterleaved;
  RotaryAngles m_forward, m_backward;
};

}  // namespace fuseline::cpu
