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

ScaleOrder orderOf(const ScalingTraits& traits) {
  if (traits.scaleFormat != ScaleFormat::F32) return ScaleOrder::Tiles;
  return traits.block.rows == 1 ? ScaleOrder::Columns : ScaleOrder::Rows;
}

ScaleMap mapIn(ScaleOrder order, const TensorSpec& nominal, Scaling scaling, Usage direction) {
  const ScalingTraits& traits = traitsOf(scaling);
  const BlockShape matrix = storedMatrixOf(nominal, scaling, direction);
  const BlockShape grid = blockGridOf(nominal, scaling, direction);
  const bool isOnEnd = direction == Usage::Columnwise && !traits.isColumnwiseTransposed;
  ScaleMap map{.order = order, .isOnEnd = isOnEnd, .gridCols = grid.cols, .inner = isOnEnd ? grid.rows : grid.cols};
  const BlockShape& outerOf = map.isOfTiles() ? matrix : grid;
  map.outer = isOnEnd ? outerOf.cols : outerOf.rows;
  map.repeat = map.isOfTiles() ? traits.block.rows : 1;
  return map;
}

}  // namespace

ScaleMap scaleMapOf(const TensorSpec& nominal, Scaling scaling, Usage direction) {
  return mapIn(orderOf(traitsOf(scaling)), nominal, scaling, direction);
}

ScaleMap mxScaleMapOf(const TensorSpec& nominal, Scaling scaling, Usage direction) {
  return mapIn(ScaleOrder::TileWords, nominal, scaling, direction);
}

Shape gemmScalesShape(const TensorSpec& nominal, Scaling scaling, Usage direction) {
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
  for (const Usage direction : {Usage::Rowwise, Usage::Columnwise}) {
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
