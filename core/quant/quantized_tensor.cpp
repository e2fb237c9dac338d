// Shapes and sizes of quantized tensors.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/quantized_tensor.h"

#include "core/quant/scale_layout.h"

namespace fuseline {

float QuantizedCopy::amaxOf(std::int64_t row) const {
  return rowAmaxes.empty() ? amax.value_or(0.0F) : rowAmaxes[static_cast<std::size_t>(row)];
}

std::int64_t QuantizedCopy::bytes() const {
  const std::size_t numAmaxes = amax ? 1 : rowAmaxes.size();
  return data.spec.bytes() + scaleInv.spec.bytes() + static_cast<std::int64_t>(numAmaxes * sizeof(float));
}

const std::optional<QuantizedCopy>& QuantizedTensor::copy(Usage direction) const {
  return direction == Usage::Rowwise ? rowwise : columnwise;
}

std::optional<QuantizedCopy>& QuantizedTensor::copy(Usage direction) {
  return direction == Usage::Rowwise ? rowwise : columnwise;
}

TensorSpec codesSpec(const QuantizedSpec& spec, Usage direction) {
  const BlockShape matrix = storedMatrixOf(spec.nominal, spec.scaling, direction);
  return {DType::U8, {matrix.rows, codeBytes(spec.format, matrix.cols)}};
}

TensorSpec scalesSpec(const QuantizedSpec& spec, Usage direction) {
  const DType dtype = traitsOf(spec.scaling).scaleFormat == ScaleFormat::F32 ? DType::F32 : DType::U8;
  if (spec.scaling == Scaling::PerTensor) return {dtype, {1}};
  if (spec.layout == ScaleLayout::Gemm) return {dtype, gemmScalesShape(spec.nominal, spec.scaling, direction)};
  const BlockShape grid = blockGridOf(spec.nominal, spec.scaling, direction);
  return {dtype, {grid.rows, grid.cols}};
}

}  // namespace fuseline
