// Scaling of elements: one scale per tensor, or one per block, and its format.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/quantized_form.h"
#include "core/tensor/tensor_spec.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace fuseline {

/// "rowwise", "columnwise".
std::string_view directionName(Usage direction);

struct BlockShape {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  bool operator==(const BlockShape&) const = default;
};

struct ScalingTraits {
  Scaling scaling;
  std::string_view name;  // "block_1x128"
  /// In the rowwise direction; 0 x 0 for the whole tensor.
  BlockShape block;
  ScaleFormat scaleFormat;
  /// The columnwise tensor is stored as [K, M]. Otherwise it is stored as [M, K], with transposed blocks.
  bool isColumnwiseTransposed;
  /// Required multiples of a quantized tensor's extents in a GEMM: the contracted one and the outer one. The rows of a
  /// group are an extent of its own GEMMs. Source: TransformerEngine's shape checks (assert_dim_for_fp8_exec,
  /// cublaslt_gemm.cu), and for groups its alignment (get_align_size_for_quantization).
  std::int64_t contractedMultiple;
  std::int64_t outerMultiple;
};

const ScalingTraits& traitsOf(Scaling scaling);
/// Whether blocks have E4M3 scales, and the whole tensor an amax in addition.
inline bool isNvfp4(Scaling scaling) { return traitsOf(scaling).scaleFormat == ScaleFormat::E4M3; }
inline bool isOfBlocksOf128(Scaling scaling) {
  return scaling == Scaling::Block1x128 || scaling == Scaling::Block128x128;
}

/// Required multiples of a tensor's rows and columns for a GEMM to read it quantized in this direction.
BlockShape gemmMultiples(Scaling scaling, Usage direction);

/// The block of a quantized tensor in its stored orientation.
BlockShape blockOf(Scaling scaling, Usage direction);

/// The matrix of a quantized tensor in its stored orientation: all leading dimensions of the tensor are merged.
BlockShape storedMatrixOf(const TensorSpec& tensor, Scaling scaling, Usage direction);

/// The number of blocks of such a matrix, rows and columns.
BlockShape blockGridOf(const TensorSpec& tensor, Scaling scaling, Usage direction);

/// Position of a block's scale among the scales of a quantized tensor: at row * rowStride + col * colStride of the grid
/// of blocks. Scales of blocks of 128 are stored as cuBLASLt reads them: those of 1x128 with the rows of a column of
/// blocks contiguous, those of 128x128 with the blocks of a row contiguous, and padded to multiples of kScalesTogether
/// by zeros.
struct ScalePlaces {
  static constexpr std::int64_t kScalesTogether = 4;
  std::int64_t rowStride = 1;
  std::int64_t colStride = 1;
  std::int64_t count = 1;  // padding included
};
ScalePlaces scalePlacesOf(const TensorSpec& tensor, Scaling scaling, Usage direction);

/// Required multiple of the rows of a window of a quantized tensor: whole blocks, of as many rows as a GEMM needs.
std::int64_t windowMultiple(const QuantizedForm& form);

/// Sizes and offsets of the parts of a quantized tensor in memory, in bytes: values, then scales, then (Nv scalings)
/// the amaxes as f32. Offsets of a window count from its first value, and its sizes are those of its own rows.
struct CopyParts {
  std::int64_t codesBytes = 0;
  std::int64_t scalesOffset = 0;
  std::int64_t scalesBytes = 0;
  std::int64_t amaxOffset = 0;
  std::int64_t numAmaxes = 0;
  std::int64_t totalBytes = 0;
};
/// Requires a quantized spec.
CopyParts partsOf(const TensorSpec& copy);

constexpr std::int64_t ceilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t roundedUp(std::int64_t a, std::int64_t multiple) { return ceilDiv(a, multiple) * multiple; }

}  // namespace fuseline
