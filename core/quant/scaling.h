// How elements are scaled: one scale a tensor, or one a block, in which format.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/element_format.h"
#include "core/tensor/tensor_spec.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace fuseline {

/// Blocks as rows x columns of the matrix [M, K] whose columns are contracted. Nv scalings have a float32 scale a
/// tensor besides.
enum class Scaling : std::uint8_t { PerTensor, Block1x128, Block128x128, Mx1x32, Mx32x32, Nv1x16, Nv16x16 };

/// What is stored of a scale: the factor that dequantizes.
enum class ScaleFormat : std::uint8_t { F32, E8M0, E4M3 };

/// What a GEMM contracts: the columns of the tensor as it is, or its rows.
enum class Direction : std::uint8_t { Rowwise, Columnwise };

/// "rowwise", "columnwise".
std::string_view directionName(Direction direction);

struct BlockShape {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  bool operator==(const BlockShape&) const = default;
};

struct ScalingTraits {
  Scaling scaling;
  std::string_view name;  // "block_1x128"
  /// Of the rowwise copy; 0 x 0 for the whole tensor.
  BlockShape block;
  ScaleFormat scaleFormat;
  /// The columnwise copy stands as [K, M]. Otherwise it stands as [M, K], with blocks on end.
  bool isColumnwiseTransposed;
  /// What M and K must be multiples of in a GEMM. Source: TransformerEngine's shape checks.
  std::int64_t gemmAlignment;
};

const ScalingTraits& traitsOf(Scaling scaling);
std::optional<Scaling> parseScaling(std::string_view name);

/// The block of a copy as it stands in memory.
BlockShape blockOf(Scaling scaling, Direction direction);

/// The matrix of a copy as it stands in memory: all leading dimensions of the tensor are one.
BlockShape storedMatrixOf(const TensorSpec& tensor, Scaling scaling, Direction direction);

/// The number of blocks of such a matrix, rows and columns.
BlockShape blockGridOf(const TensorSpec& tensor, Scaling scaling, Direction direction);

constexpr std::int64_t ceilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t roundedUp(std::int64_t a, std::int64_t multiple) { return ceilDiv(a, multiple) * multiple; }

}  // namespace fuseline
