// The table of scalings, and the shapes that follow from it.
// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/scaling.h"

#include "core/tensor/quantizer_spec.h"

#include <algorithm>
#include <array>
#include <utility>

namespace fuseline {

namespace {

constexpr std::array kTraits = {
    ScalingTraits{Scaling::PerTensor, "per_tensor", {0, 0}, ScaleFormat::F32, true, 16, 8},
    ScalingTraits{Scaling::Block1x128, "block_1x128", {1, 128}, ScaleFormat::F32, true, 16, 8},
    ScalingTraits{Scaling::Block128x128, "block_128x128", {128, 128}, ScaleFormat::F32, true, 16, 8},
    ScalingTraits{Scaling::Mx1x32, "mx_1x32", {1, 32}, ScaleFormat::E8M0, false, 32, 32},
    ScalingTraits{Scaling::Mx32x32, "mx_32x32", {32, 32}, ScaleFormat::E8M0, false, 32, 32},
    ScalingTraits{Scaling::Nv1x16, "nv_1x16", {1, 16}, ScaleFormat::E4M3, true, 16, 16},
    ScalingTraits{Scaling::Nv16x16, "nv_16x16", {16, 16}, ScaleFormat::E4M3, true, 16, 16},
    ScalingTraits{Scaling::NvRow1x16, "nv_row_1x16", {1, 16}, ScaleFormat::E4M3, true, 16, 16},
};

/// Parts begin at cache lines.
constexpr std::int64_t kPartAlignment = 64;

std::int64_t scaleBytes(ScaleFormat format) { return format == ScaleFormat::F32 ? 4 : 1; }

}  // namespace

std::string_view directionName(Usage direction) { return direction == Usage::Rowwise ? "rowwise" : "columnwise"; }

const ScalingTraits& traitsOf(Scaling scaling) { return *std::ranges::find(kTraits, scaling, &ScalingTraits::scaling); }

BlockShape gemmMultiples(Scaling scaling, Usage direction) {
  const ScalingTraits& traits = traitsOf(scaling);
  if (direction == Usage::Rowwise) return {traits.outerMultiple, traits.contractedMultiple};
  return {traits.contractedMultiple, traits.outerMultiple};
}

BlockShape blockOf(Scaling scaling, Usage direction) {
  const ScalingTraits& traits = traitsOf(scaling);
  const bool isOnEnd = direction == Usage::Columnwise && !traits.isColumnwiseTransposed;
  return isOnEnd ? BlockShape{traits.block.cols, traits.block.rows} : traits.block;
}

BlockShape storedMatrixOf(const TensorSpec& tensor, Scaling scaling, Usage direction) {
  BlockShape matrix = {tensor.rows(), tensor.cols()};
  if (direction == Usage::Columnwise && traitsOf(scaling).isColumnwiseTransposed) std::swap(matrix.rows, matrix.cols);
  return matrix;
}

BlockShape blockGridOf(const TensorSpec& tensor, Scaling scaling, Usage direction) {
  const BlockShape block = blockOf(scaling, direction);
  if (block.rows == 0) return {1, 1};
  const BlockShape matrix = storedMatrixOf(tensor, scaling, direction);
  return {ceilDiv(matrix.rows, block.rows), ceilDiv(matrix.cols, block.cols)};
}

QuantizedForm formOf(const QuantizerSpec& quantizer, Usage direction) {
  return {.format = quantizer.format,
          .scaling = quantizer.scaling,
          .direction = direction,
          .isTransformed = quantizer.transformsColumnwise && direction == Usage::Columnwise};
}

ScalePlaces scalePlacesOf(const TensorSpec& tensor, Scaling scaling, Usage direction) {
  const BlockShape grid = blockGridOf(tensor, scaling, direction);
  const auto padded = [](std::int64_t extent) { return roundedUp(extent, ScalePlaces::kScalesTogether); };
  switch (scaling) {
    case Scaling::Block1x128:
      return {.rowStride = 1, .colStride = padded(grid.rows), .count = padded(grid.rows) * grid.cols};
    case Scaling::Block128x128:
      return {.rowStride = padded(grid.cols), .colStride = 1, .count = grid.rows * padded(grid.cols)};
    default: return {.rowStride = grid.cols, .colStride = 1, .count = grid.rows * grid.cols};
  }
}

CopyParts partsOf(const TensorSpec& copy) {
  const QuantizedForm& form = *copy.quantized;
  const ScalingTraits& traits = traitsOf(form.scaling);
  const BlockShape matrix = storedMatrixOf(copy, form.scaling, form.direction);
  CopyParts parts;
  parts.codesBytes = matrix.rows * codeBytes(form.format, matrix.cols);
  parts.scalesOffset = roundedUp(parts.codesBytes, kPartAlignment);
  parts.scalesBytes = scalePlacesOf(copy, form.scaling, form.direction).count * scaleBytes(traits.scaleFormat);
  parts.amaxOffset = roundedUp(parts.scalesOffset + parts.scalesBytes, kPartAlignment);
  parts.numAmaxes = form.scaling == Scaling::NvRow1x16 ? matrix.rows : std::int64_t{isNvfp4(form.scaling)};
  const bool hasAmax = parts.numAmaxes > 0;
  parts.totalBytes = hasAmax ? parts.amaxOffset + 4 * parts.numAmaxes : parts.scalesOffset + parts.scalesBytes;
  return parts;
}

}  // namespace fuseline
