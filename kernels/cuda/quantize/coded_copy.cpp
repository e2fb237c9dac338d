// Strides of scales from the stored grid of blocks, and dequantization.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/quantize/coded_copy.h"

#include "core/quant/rounding_bytes.h"
#include "core/quant/scale_math.h"
#include "core/tensor/scaling.h"
#include "kernels/cuda/elementwise/elementwise_program.h"
#include "kernels/cuda/quantize/block_quantize_launch.h"
#include "kernels/cuda/quantize/nvfp4_launch.h"
#include "kernels/cuda/quantize/quantize_launch.h"

#include <algorithm>
#include <utility>

namespace fuseline::cuda {

namespace {

void launchDecodeTensor(const TensorSpec& spec, const std::byte* memory, std::byte* out, Stream stream) {
  launchDequantize({.codes = reinterpret_cast<const std::uint8_t*>(memory),
                    .inverseScale = reinterpret_cast<const float*>(memory + partsOf(spec).scalesOffset),
                    .code = floatCodeOf(spec.quantized->format),
                    .out = out,
                    .element = elementOf(spec.dtype),
                    .elements = spec.numElements()},
                   stream);
}

/// The matrix of encoded values with its own blocks, whether it is a transpose or not.
void launchDecodeBlocks(const TensorSpec& spec, const std::byte* memory, std::byte* out, Stream stream) {
  const QuantizedForm& form = *spec.quantized;
  const BlockShape matrix = storedMatrixOf(spec, form.scaling, form.direction);
  const BlockShape block = blockOf(form.scaling, form.direction);
  const ScalePlaces places = scalePlacesOf(spec, form.scaling, form.direction);
  launchBlockDequantize({.codes = reinterpret_cast<const std::uint8_t*>(memory),
                         .scales = memory + partsOf(spec).scalesOffset,
                         .code = floatCodeOf(form.format),
                         .isE8m0 = traitsOf(form.scaling).scaleFormat == ScaleFormat::E8M0,
                         .blockRows = block.rows,
                         .blockCols = block.cols,
                         .scaleRowStride = places.rowStride,
                         .scaleColStride = places.colStride,
                         .out = out,
                         .element = elementOf(spec.dtype),
                         .rows = matrix.rows,
                         .cols = matrix.cols},
                        stream);
}

void launchDecodeNvfp4(const TensorSpec& spec, const std::byte* memory, std::byte* out, Stream stream) {
  const QuantizedForm& form = *spec.quantized;
  const BlockShape matrix = storedMatrixOf(spec, form.scaling, form.direction);
  const CopyParts parts = partsOf(spec);
  launchNvfp4Dequantize({.codes = reinterpret_cast<const std::uint8_t*>(memory),
                         .scales = reinterpret_cast<const std::uint8_t*>(memory + parts.scalesOffset),
                         .amax = reinterpret_cast<const float*>(memory + parts.amaxOffset),
                         .hasSquares = hasSquares(form.scaling),
                         .isTransformed = form.isTransformed,
                         .out = out,
                         .element = elementOf(spec.dtype),
                         .rows = matrix.rows,
                         .cols = matrix.cols},
                        stream);
}

}  // namespace

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
  copy.isTransposed = form.direction == Usage::Columnwise && traitsOf(form.scaling).isColumnwiseTransposed;
  const ScalePlaces places = scalePlacesOf(spec, form.scaling, form.direction);
  const BlockShape grid = blockGridOf(spec, form.scaling, form.direction);
  copy.scaleRowStride = places.rowStride;
  copy.scaleColStride = places.colStride;
  if (places.count > grid.rows * grid.cols) copy.scalesInLine = places.colStride == 1 ? grid.cols : grid.rows;
  if (copy.isTransposed) std::swap(copy.scaleRowStride, copy.scaleColStride);
  return copy;
}

device::Nvfp4Copy nvfp4CopyOf(const TensorSpec& spec, std::byte* memory) {
  if (!memory) return {};
  const CopyParts parts = partsOf(spec);
  return {.codes = reinterpret_cast<std::uint8_t*>(memory),
          .scales = reinterpret_cast<std::uint8_t*>(memory + parts.scalesOffset),
          .amax = reinterpret_cast<float*>(memory + parts.amaxOffset),
          .isTransformed = spec.quantized->isTransformed};
}

bool hasSquares(Scaling scaling) { return traitsOf(scaling).block.rows > 1; }

device::RoundingBytes roundingBytesOf(const std::string& name, Usage direction) {
  const RandomBytes bytes = roundingBytes(0, name, direction);
  device::RoundingBytes made;
  std::ranges::copy(bytes.key(), made.key);
  std::ranges::copy(bytes.stream(), made.stream);
  return made;
}

void launchDecode(const TensorSpec& spec, const std::byte* memory, std::byte* out, Stream stream) {
  if (spec.quantized->format == ElementFormat::E2M1) return launchDecodeNvfp4(spec, memory, out, stream);
  spec.quantized->scaling == Scaling::PerTensor ? launchDecodeTensor(spec, memory, out, stream)
                                                : launchDecodeBlocks(spec, memory, out, stream);
}

}  // namespace fuseline::cuda
