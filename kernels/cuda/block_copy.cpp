// Strides of scales from the grid of blocks as it stands in memory.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/block_copy.h"

#include "core/tensor/scaling.h"

#include <utility>

namespace fuseline::cuda {

device::FloatCode floatCodeOf(ElementFormat format) {
  return format == ElementFormat::E5M2 ? device::FloatCode::E5M2 : device::FloatCode::E4M3;
}

BlockKind blockKindOf(Scaling scaling) {
  if (scaling == Scaling::Block128x128) return BlockKind::Float8Square;
  if (scaling == Scaling::Mx1x32) return BlockKind::MxLine;
  return scaling == Scaling::Mx32x32 ? BlockKind::MxSquare : BlockKind::Float8Line;
}

BlockCopy blockCopyOf(const TensorSpec& spec, std::byte* memory) {
  if (!memory) return {};
  const QuantizedForm& form = *spec.quantized;
  BlockCopy copy{.codes = reinterpret_cast<std::uint8_t*>(memory),
                 .scales = memory + partsOf(spec).scalesOffset,
                 .code = floatCodeOf(form.format)};
  copy.isTransposed = form.direction == Direction::Columnwise && traitsOf(form.scaling).isColumnwiseTransposed;
  copy.scaleRowStride = blockGridOf(spec, form.scaling, form.direction).cols;
  copy.scaleColStride = 1;
  if (copy.isTransposed) std::swap(copy.scaleRowStride, copy.scaleColStride);
  return copy;
}

}  // namespace fuseline::cuda
