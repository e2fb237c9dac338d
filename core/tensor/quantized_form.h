// Encoding of a tensor's numbers in 8 or 4 bits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/element_format.h"

#include <cstdint>

namespace fuseline {

/// Blocks as rows x columns of the matrix [M, K] with contracted columns. Nv scalings also have one float32 scale per
/// tensor, NvRow1x16 one per row of the matrix.
enum class Scaling : std::uint8_t { PerTensor, Block1x128, Block128x128, Mx1x32, Mx32x32, Nv1x16, Nv16x16, NvRow1x16 };

/// Stored format of a scale: the dequantization factor.
enum class ScaleFormat : std::uint8_t { F32, E8M0, E4M3 };

/// The dimension that a GEMM contracts: the columns of the tensor, or its rows.
enum class Usage : std::uint8_t { Rowwise, Columnwise };

/// Rows [first, ...) of a tensor of `whole` rows, in its memory. Not set: all of its rows.
struct RowWindow {
  std::int64_t first = 0;
  std::int64_t whole = 0;

  explicit operator bool() const { return whole > 0; }
  bool operator==(const RowWindow&) const = default;
};

/// One quantized form of a tensor: values for a GEMM that contracts this direction, and their scales.
struct QuantizedForm {
  ElementFormat format = ElementFormat::E4M3;
  Scaling scaling = Scaling::PerTensor;
  Usage direction = Usage::Rowwise;
  /// The values are those of the tensor's random Hadamard transform.
  bool isTransformed = false;
  /// Nonzero: number of groups of rows, each stored separately (core/tensor/grouped_copy.h).
  std::int64_t numGroups = 0;
  /// Set: the tensor begins with its first value, and its scales are among those of the whole.
  RowWindow window = {};
  bool operator==(const QuantizedForm&) const = default;
};

}  // namespace fuseline
