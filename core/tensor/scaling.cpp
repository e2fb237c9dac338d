// The table of scalings, and the shapes that follow from it.
// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/scaling.h"

#include "core/tensor/quantizer_spec.h"

#include <algorithm>
#include <array>
#include <numeric>
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

TensorSpec wholeOf(const TensorSpec& rows) {
  TensorSpec whole{rows.dtype, {rows.quantized->window.whole, rows.cols()}, rows.quantized};
  whole.quantized->window = {};
  return whole;
}

/// Rows of a tensor follow each other, except in a transposed one; so do their scales within a column of blocks.
CopyParts partsOfWindow(const TensorSpec& rows) {
  const QuantizedForm& form = *rows.quantized;
  const TensorSpec whole = wholeOf(rows);
  const std::int64_t first = form.window.first;
  const std::int64_t firstCode = first * codeBytes(form.format, rows.cols());
  const std::int64_t firstBlock = first / std::max<std::int64_t>(blockOf(form.scaling, form.direction).rows, 1);
  const bool isOfTensor = form.scaling == Scaling::PerTensor;
  const ScalePlaces places = scalePlacesOf(rows, form.scaling, form.direction);
  const std::int64_t oneScale = scaleBytes(traitsOf(form.scaling).scaleFormat);
  const bool hasRowAmaxes = form.scaling == Scaling::NvRow1x16;
  CopyParts parts = partsOf(whole);
  parts.codesBytes = rows.rows() * codeBytes(form.format, rows.cols());
  parts.scalesOffset += (isOfTensor ? 0 : firstBlock * places.rowStride * oneScale) - firstCode;
  parts.scalesBytes = places.count * oneScale;
  parts.amaxOffset += (hasRowAmaxes ? 4 * first : 0) - firstCode;
  if (hasRowAmaxes) parts.numAmaxes = rows.rows();
  parts.totalBytes = parts.codesBytes + parts.scalesBytes + 4 * parts.numAmaxes;
  return parts;
}

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

std::int64_t windowMultiple(const QuantizedForm& form) {
  const std::int64_t blockRows = std::max<std::int64_t>(blockOf(form.scaling, form.direction).rows, 1);
  return std::lcm(blockRows, gemmMultiples(form.scaling, form.direction).rows);
}

ScalePlaces scalePlacesOf(const TensorSpec& tensor, Scaling scaling, Usage direction) {
  const BlockShape grid = blockGridOf(tensor, scaling, direction);
  if (tensor.quantized && tensor.quantized->window) {
    ScalePlaces places = scalePlacesOf(wholeOf(tensor), scaling, direction);
    places.count = grid.rows * grid.cols;
    return places;
  }
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
  if (form.window) return partsOfWindow(copy);
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
