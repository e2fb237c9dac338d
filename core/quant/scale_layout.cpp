// Between one scale a block and the layout of cuBLASLt: one mapping of positions, read in both directions.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/scale_layout.h"

#include <cstring>
#include <utility>

namespace fuseline {

namespace {

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

ScaleMap scaleMapOf(const TensorSpec& nominal, Scaling scaling, Direction direction) {
  const ScalingTraits& traits = traitsOf(scaling);
  const BlockShape matrix = storedMatrixOf(nominal, scaling, direction);
  const BlockShape grid = blockGridOf(nominal, scaling, direction);
  const bool hasScaleARow = traits.scaleFormat != ScaleFormat::F32;
  const bool isOnEnd = direction == Direction::Columnwise && !traits.isColumnwiseTransposed;
  ScaleMap map{.isOnEnd = isOnEnd, .gridCols = grid.cols, .inner = isOnEnd ? grid.rows : grid.cols};
  map.order = traits.block.rows == 1 ? ScaleOrder::Columns : ScaleOrder::Rows;
  if (hasScaleARow) map.order = ScaleOrder::Tiles;
  const BlockShape& outerOf = hasScaleARow ? matrix : grid;
  map.outer = isOnEnd ? outerOf.cols : outerOf.rows;
  map.repeat = hasScaleARow ? traits.block.rows : 1;
  return map;
}

Shape gemmScalesShape(const TensorSpec& nominal, Scaling scaling, Direction direction) {
  if (scaling == Scaling::PerTensor) return {1};
  const ScaleMap map = scaleMapOf(nominal, scaling, direction);
  if (map.order == ScaleOrder::Columns) return {map.paddedInner(), map.paddedOuter()};
  return {map.paddedOuter(), map.paddedInner()};
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
    const ScaleMap map = scaleMapOf(tensor.spec.nominal, tensor.spec.scaling, direction);
    copy->scaleInv =
        rearranged(copy->scaleInv, scalesSpec(tensor.spec, direction), map,
                   isToGemm ? &ScaleMap::compact : &ScaleMap::gemm, isToGemm ? &ScaleMap::gemm : &ScaleMap::compact);
  }
  return tensor;
}

}  // namespace fuseline
