// Strides of scales from the grid of blocks as it stands in memory.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/coded_copy.h"

#include "core/quant/scale_math.h"
#include "core/tensor/scaling.h"

#include <utility>

namespace fuseline::cuda {

device::FloatCode floatCodeOf(ElementFormat format) {
  return format == ElementFormat::E5M2 ? device::FloatCode::E5M2 : device::FloatCode::E4M3;
}

device::ScaleRule scaleRuleOf(const QuantizerSpec& quantizer, DType dtype) {
  device::ScaleRule rule{.epsilon = quantizer.scale.epsilon, .isPowerOfTwo = quantizer.scale.isPowerOfTwo};
  if (quantizer.scaling != Scaling::PerTensor) rule.ifInfinite = largestFinite(dtype);
  return rule;
}

device::CopyKind copyKindOf(Scaling scaling) {
  switch (scaling) {
    case Scaling::Block1x128: return device::CopyKind::Float8Line;
    case Scaling::Block128x128: return device::CopyKind::Float8Square;
    case Scaling::Mx1x32: return device::CopyKind::MxLine;
    case Scaling::Mx32x32: return device::CopyKind::MxSquare;
    default: return device::CopyKind::Tensor;
  }
}

device::CodedCopy codedCopyOf(const TensorSpec& spec, std::byte* memory) {
  if (!memory) return {};
  const QuantizedForm& form = *spec.quantized;
  device::CodedCopy copy{.codes = reinterpret_cast<std::uint8_t*>(memory),
                         .scales = memory + partsOf(spec).scalesOffset,
                         .code = floatCodeOf(form.format)};
  copy.isTransposed = form.direction == Direction::Columnwise && traitsOf(form.scaling).isColumnwiseTransposed;
  copy.scaleRowStride = blockGridOf(spec, form.scaling, form.direction).cols;
  copy.scaleColStride = 1;
  if (copy.isTransposed) std::swap(copy.scaleRowStride, copy.scaleColStride);
  return copy;
}

}  // namespace fuseline::cuda
