// Between one scale a block and the layout of cuBLASLt: one mapping of positions, read in both directions.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/scale_layout.h"

#include <cstring>
#include <utility>

namespace fuseline {

namespace {

constexpr std::int64_t kTileOuter = 128;
constexpr std::int64_t kTileInner = 4;
constexpr std::int64_t kTileColumn = 32;  // outer rows whose scales stand 16 bytes apart

/// A copy's blocks as a GEMM sees them: the contraction is always the inner direction.
struct ScaleMap {
  Scaling scaling;
  BlockShape grid;      // of the blocks as they stand in memory
  bool isOnEnd;         // the grid's rows lie along the contraction
  std::int64_t outer;   // outer rows that have scales of their own
  std::int64_t inner;   // scales along the contraction
  std::int64_t repeat;  // outer rows that share a scale

  /// Index in the compact scales.
  std::int64_t compact(std::int64_t row, std::int64_t block) const {
    const std::int64_t shared = row / repeat;
    return isOnEnd ? block * grid.cols + shared : shared * grid.cols + block;
  }

  /// Index in the layout of cuBLASLt.
  std::int64_t gemm(std::int64_t row, std::int64_t block) const {
    if (traitsOf(scaling).scaleFormat != ScaleFormat::F32)
      return swizzledOffset(row, block, roundedUp(inner, kTileInner));
    if (scaling == Scaling::Block1x128) return block * roundedUp(outer, kTileInner) + row;
    return row * roundedUp(inner, kTileInner) + block;
  }
};

ScaleMap mapOf(const TensorSpec& nominal, Scaling scaling, Direction direction) {
  const ScalingTraits& traits = traitsOf(scaling);
  const BlockShape matrix = storedMatrixOf(nominal, scaling, direction);
  ScaleMap map{.scaling = scaling, .grid = blockGridOf(nominal, scaling, direction)};
  map.isOnEnd = direction == Direction::Columnwise && !traits.isColumnwiseTransposed;
  map.inner = map.isOnEnd ? map.grid.rows : map.grid.cols;
  const bool hasScaleARow = traits.scaleFormat != ScaleFormat::F32;
  map.repeat = hasScaleARow ? traits.block.rows : 1;
  const std::int64_t gridOuter = map.isOnEnd ? map.grid.cols : map.grid.rows;
  map.outer = hasScaleARow ? (map.isOnEnd ? matrix.cols : matrix.rows) : gridOuter;
  return map;
}

/// Copies element map.*from of every scale to map.*to.
using Position = std::int64_t (ScaleMap::*)(std::int64_t, std::int64_t) const;
Tensor rearranged(const Tensor& scales, TensorSpec spec, const ScaleMap& map, Position from, Position to) {
  Tensor result = Tensor::zeros(std::move(spec));
  const auto size = static_cast<std::size_t>(sizeBytes(scales.spec.dtype));
  for (std::int64_t row = 0; row < map.outer; ++row)
    for (std::int64_t block = 0; block < map.inner; ++block)
      std::memcpy(result.data.data() + static_cast<std::size_t>((map.*to)(row, block)) * size,
                  scales.data.data() + static_cast<std::size_t>((map.*from)(row, block)) * size, size);
  return result;
}

}  // namespace

std::int64_t swizzledOffset(std::int64_t outer, std::int64_t inner, std::int64_t paddedInner) {
  const std::int64_t tile = outer / kTileOuter * (paddedInner / kTileInner) + inner / kTileInner;
  const std::int64_t row = outer % kTileOuter;
  return tile * kTileOuter * kTileInner + row % kTileColumn * 16 + row / kTileColumn * kTileInner + inner % kTileInner;
}

Shape gemmScalesShape(const TensorSpec& nominal, Scaling scaling, Direction direction) {
  if (scaling == Scaling::PerTensor) return {1};
  const ScaleMap map = mapOf(nominal, scaling, direction);
  if (scaling == Scaling::Block1x128) return {map.inner, roundedUp(map.outer, kTileInner)};
  const bool isTiled = traitsOf(scaling).scaleFormat != ScaleFormat::F32;
  return {isTiled ? roundedUp(map.outer, kTileOuter) : map.outer, roundedUp(map.inner, kTileInner)};
}

QuantizedTensor withScaleLayout(QuantizedTensor tensor, ScaleLayout layout) {
  if (tensor.spec.layout == layout || tensor.spec.scaling == Scaling::PerTensor) {
    tensor.spec.layout = layout;
    return tensor;
  }
  tensor.spec.layout = layout;
  const bool isToGemm = layout == ScaleLayout::Gemm;
  for (const Direction direction : {Direction::Rowwise, Direction::Columnwise}) {
    std::optional<QuantizedCopy>& copy = tensor.copy(direction);
    if (!copy) continue;
    const ScaleMap map = mapOf(tensor.spec.nominal, tensor.spec.scaling, direction);
    copy->scaleInv =
        rearranged(copy->scaleInv, scalesSpec(tensor.spec, direction), map,
                   isToGemm ? &ScaleMap::compact : &ScaleMap::gemm, isToGemm ? &ScaleMap::gemm : &ScaleMap::compact);
  }
  return tensor;
}

}  // namespace fuseline
