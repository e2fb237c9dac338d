// Between quantized tensors and their memory.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/copy_memory.h"

#include "core/quant/scale_layout.h"
#include "core/tensor/grouped_copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace fuseline {

namespace {

QuantizedSpec quantizedSpec(const TensorSpec& spec) {
  const QuantizedForm& form = *spec.quantized;
  return {.nominal = {spec.dtype, spec.shape},
          .format = form.format,
          .scaling = form.scaling,
          .isColumnwiseTransformed = form.isTransformed};
}

Copies copiesOf(Usage direction) { return direction == Usage::Rowwise ? Copies::Rowwise : Copies::Columnwise; }

Tensor filled(TensorSpec spec, const std::byte* from) {
  Tensor tensor = Tensor::zeros(std::move(spec));
  std::copy_n(from, tensor.data.size(), tensor.data.begin());
  return tensor;
}

/// f(offset of a block's scale in the memory of scales, offset in compact scales, bytes)
template <class Function>
void forEachScale(const TensorSpec& spec, std::size_t bytes, const Function& f) {
  const QuantizedForm& form = *spec.quantized;
  const BlockShape grid = blockGridOf(spec, form.scaling, form.direction);
  const ScalePlaces places = scalePlacesOf(spec, form.scaling, form.direction);
  for (std::int64_t row = 0; row < grid.rows; ++row)
    for (std::int64_t col = 0; col < grid.cols; ++col)
      f(static_cast<std::size_t>(row * places.rowStride + col * places.colStride) * bytes,
        static_cast<std::size_t>(row * grid.cols + col) * bytes, bytes);
}

std::size_t scaleBytes(const Tensor& scales) { return static_cast<std::size_t>(sizeBytes(scales.spec.dtype)); }

}  // namespace

QuantizedTensor fromMemory(const TensorSpec& spec, const std::byte* memory) {
  const Usage direction = spec.quantized->direction;
  const CopyParts parts = partsOf(spec);
  QuantizedTensor tensor{.spec = quantizedSpec(spec), .rowwise = std::nullopt, .columnwise = std::nullopt};
  QuantizedCopy copy{.data = filled(codesSpec(tensor.spec, direction), memory),
                     .scaleInv = Tensor::zeros(scalesSpec(tensor.spec, direction)),
                     .amax = std::nullopt};
  forEachScale(spec, scaleBytes(copy.scaleInv), [&](std::size_t from, std::size_t to, std::size_t bytes) {
    std::memcpy(copy.scaleInv.data.data() + to, memory + parts.scalesOffset + from, bytes);
  });
  std::vector<float> amaxes(static_cast<std::size_t>(parts.numAmaxes));
  if (!amaxes.empty()) std::memcpy(amaxes.data(), memory + parts.amaxOffset, amaxes.size() * sizeof(float));
  if (spec.quantized->scaling == Scaling::NvRow1x16)
    copy.rowAmaxes = std::move(amaxes);
  else if (!amaxes.empty())
    copy.amax = amaxes.front();
  tensor.copy(direction) = std::move(copy);
  return tensor;
}

void toMemory(const QuantizedTensor& tensor, const TensorSpec& spec, std::byte* memory) {
  const QuantizedTensor stored = withScaleLayout(tensor, ScaleLayout::Compact);
  const QuantizedCopy& copy = *stored.copy(spec.quantized->direction);
  const CopyParts parts = partsOf(spec);
  if (!spec.quantized->window) std::fill_n(memory, parts.totalBytes, std::byte{0});
  std::ranges::copy(copy.data.data, memory);
  forEachScale(spec, scaleBytes(copy.scaleInv), [&](std::size_t to, std::size_t from, std::size_t bytes) {
    std::memcpy(memory + parts.scalesOffset + to, copy.scaleInv.data.data() + from, bytes);
  });
  if (copy.amax) std::memcpy(memory + parts.amaxOffset, &*copy.amax, sizeof(float));
  if (!copy.rowAmaxes.empty())
    std::memcpy(memory + parts.amaxOffset, copy.rowAmaxes.data(), copy.rowAmaxes.size() * sizeof(float));
}

Result<void> quantizeToMemory(const Tensor& x, const QuantizerSpec& quantizer, const QuantizerInputs& inputs,
                              const TensorSpec& spec, std::byte* memory) {
  const Result<QuantizedTensor> tensor = quantize(x, quantizer, copiesOf(spec.quantized->direction), inputs);
  if (!tensor) return tensor.error();
  toMemory(*tensor, spec, memory);
  return {};
}

Tensor dequantizedTensor(const TensorSpec& spec, const std::byte* memory) {
  return *dequantize(fromMemory(spec, memory), spec.quantized->direction);
}

std::vector<double> dequantizedValues(const TensorSpec& spec, const std::byte* memory) {
  std::vector<double> values;
  for (const GroupCopy& group : groupCopies(spec, memory)) {
    QuantizedTensor tensor = fromMemory(group.spec, memory + group.offset);
    tensor.spec.nominal.dtype = DType::F32;
    const std::vector<double> part = dequantize(tensor, spec.quantized->direction)->toDoubles();
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

}  // namespace fuseline
