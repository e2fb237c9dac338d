// How the numbers of a tensor are coded in 8 or 4 bits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/element_format.h"

#include <cstdint>

namespace fuseline {

/// Blocks as rows x columns of the matrix [M, K] whose columns are contracted. Nv scalings have a float32 scale a
/// tensor besides.
enum class Scaling : std::uint8_t { PerTensor, Block1x128, Block128x128, Mx1x32, Mx32x32, Nv1x16, Nv16x16 };

/// What is stored of a scale: the factor that dequantizes.
enum class ScaleFormat : std::uint8_t { F32, E8M0, E4M3 };

/// What a GEMM contracts: the columns of the tensor as it is, or its rows.
enum class Direction : std::uint8_t { Rowwise, Columnwise };

/// One quantized copy of a tensor: codes for a GEMM that contracts this direction, and their scales.
struct QuantizedForm {
  ElementFormat format = ElementFormat::E4M3;
  Scaling scaling = Scaling::PerTensor;
  Direction direction = Direction::Rowwise;
  /// The codes are those of the random Hadamard transform of the tensor.
  bool isTransformed = false;
  /// Set: the rows are in so many groups, and the copy of each stands by itself (core/tensor/grouped_copy.h).
  std::int64_t numGroups = 0;
  bool operator==(const QuantizedForm&) const = default;
};

}  // namespace fuseline
