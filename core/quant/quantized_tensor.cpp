// Shapes of quantized tensors, and their form in files.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/quantized_tensor.h"

#include "core/quant/scale_layout.h"
#include "core/support/json_fields.h"

#include <algorithm>
#include <cstring>
#include <string>

#include <fmt/format.h>

namespace fuseline {

namespace {

std::string_view layoutName(ScaleLayout layout) { return layout == ScaleLayout::Gemm ? "gemm" : "compact"; }

Tensor bytesOf(std::string_view text) {
  Tensor tensor = Tensor::zeros({DType::U8, {static_cast<std::int64_t>(text.size())}});
  std::memcpy(tensor.data.data(), text.data(), text.size());
  return tensor;
}

Tensor scalarOf(float value) {
  Tensor tensor = Tensor::zeros({DType::F32, {1}});
  std::memcpy(tensor.data.data(), &value, sizeof(value));
  return tensor;
}

Json toJson(const QuantizedSpec& spec) {
  return {{"dtype", dtypeName(spec.nominal.dtype)}, {"shape", spec.nominal.shape},
          {"format", formatName(spec.format)},      {"scaling", traitsOf(spec.scaling).name},
          {"layout", layoutName(spec.layout)},      {"isColumnwiseTransformed", spec.isColumnwiseTransformed}};
}

/// Reads a text and parses it.
template <class T, class Parse>
void readName(JsonFields& fields, const char* key, T& out, Parse parse) {
  std::string name;
  fields.read(key, name);
  if (const std::optional<T> value = parse(name))
    out = *value;
  else
    fields.refuse(key, fmt::format("'{:.40}' is unknown.", name));
}

std::optional<ScaleLayout> parseLayout(std::string_view name) {
  if (name != "gemm" && name != "compact") return std::nullopt;
  return name == "gemm" ? ScaleLayout::Gemm : ScaleLayout::Compact;
}

/// Extents that are sizes, and no more elements than a file of this size could hold.
void readShape(JsonFields& fields, Shape& shape) {
  constexpr double kMostElements = 0x1p50;
  std::vector<double> extents;
  fields.read("shape", extents);
  double product = 1;
  for (const double extent : extents) {
    product *= std::max(extent, 1.0);
    if (extent < 0 || extent != static_cast<double>(static_cast<std::int64_t>(std::min(extent, kMostElements))) ||
        product > kMostElements)
      return fields.refuse("shape", "this is not a valid tensor shape.");
    shape.push_back(static_cast<std::int64_t>(extent));
  }
}

Result<QuantizedSpec> specFromJson(const Json& json) {
  QuantizedSpec spec;
  JsonFields fields(json, "");
  readName(fields, "dtype", spec.nominal.dtype, parseDType);
  readShape(fields, spec.nominal.shape);
  readName(fields, "format", spec.format, parseElementFormat);
  readName(fields, "scaling", spec.scaling, parseScaling);
  readName(fields, "layout", spec.layout, parseLayout);
  fields.read("isColumnwiseTransformed", spec.isColumnwiseTransformed);
  if (fields.error()) return *fields.error();
  return spec;
}

/// The tensors of one quantized tensor in a file, by the end of their names.
class Parts {
 public:
  Parts(std::string_view name, const NamedTensors& tensors) : m_name(name), m_tensors(tensors) {}

  const Tensor* find(std::string_view part) const {
    const std::string name = fmt::format("{}.{}", m_name, part);
    const auto found = std::ranges::find(m_tensors, name, [](const auto& entry) { return entry.first; });
    return found == m_tensors.end() ? nullptr : &found->second;
  }

  Result<Tensor> get(std::string_view part, const TensorSpec& expected) const {
    const Tensor* tensor = find(part);
    if (!tensor) return Error{fmt::format("{}.{}: this tensor is missing.", m_name, part)};
    if (tensor->spec != expected)
      return Error{fmt::format("{}.{} is {}, but by its spec it is {}.", m_name, part, toString(tensor->spec),
                               toString(expected))};
    return *tensor;
  }

  Result<QuantizedSpec> spec() const {
    const Tensor* text = find("spec");
    if (!text) return Error{fmt::format("{}.spec: this tensor is missing; is {} quantized?", m_name, m_name)};
    const Result<Json> json = parseJson({reinterpret_cast<const char*>(text->data.data()), text->data.size()});
    const Result<QuantizedSpec> spec = json ? specFromJson(*json) : Result<QuantizedSpec>(json.error());
    if (!spec) return Error{fmt::format("{}.spec: {}", m_name, spec.error().message)};
    return spec;
  }

  /// Nothing when the file has no such copy.
  Result<std::optional<QuantizedCopy>> copy(const QuantizedSpec& spec, Direction direction) const {
    const std::string prefix = prefixOf(direction);
    if (!find(prefix + "data")) return std::optional<QuantizedCopy>();
    Result<Tensor> data = get(prefix + "data", codesSpec(spec, direction));
    if (!data) return data.error();
    Result<Tensor> scaleInv = get(prefix + "scale_inv", scalesSpec(spec, direction));
    if (!scaleInv) return scaleInv.error();
    QuantizedCopy copy{.data = std::move(*data), .scaleInv = std::move(*scaleInv), .amax = std::nullopt};
    if (isNvfp4(spec.scaling)) {
      const Result<Tensor> amax = get(prefix + "amax", {DType::F32, {1}});
      if (!amax) return amax.error();
      copy.amax = static_cast<float>(amax->toDoubles().front());
    }
    return std::optional<QuantizedCopy>(std::move(copy));
  }

  static std::string prefixOf(Direction direction) { return direction == Direction::Rowwise ? "" : "columnwise_"; }

 private:
  std::string_view m_name;
  const NamedTensors& m_tensors;
};

}  // namespace

std::int64_t QuantizedCopy::bytes() const {
  return data.spec.bytes() + scaleInv.spec.bytes() + (amax ? static_cast<std::int64_t>(sizeof(float)) : 0);
}

const std::optional<QuantizedCopy>& QuantizedTensor::copy(Direction direction) const {
  return direction == Direction::Rowwise ? rowwise : columnwise;
}

std::optional<QuantizedCopy>& QuantizedTensor::copy(Direction direction) {
  return direction == Direction::Rowwise ? rowwise : columnwise;
}

std::int64_t QuantizedTensor::bytes() const {
  return (rowwise ? rowwise->bytes() : 0) + (columnwise ? columnwise->bytes() : 0);
}

TensorSpec codesSpec(const QuantizedSpec& spec, Direction direction) {
  const BlockShape matrix = storedMatrixOf(spec.nominal, spec.scaling, direction);
  return {DType::U8, {matrix.rows, codeBytes(spec.format, matrix.cols)}};
}

TensorSpec scalesSpec(const QuantizedSpec& spec, Direction direction) {
  const DType dtype = traitsOf(spec.scaling).scaleFormat == ScaleFormat::F32 ? DType::F32 : DType::U8;
  if (spec.scaling == Scaling::PerTensor) return {dtype, {1}};
  if (spec.layout == ScaleLayout::Gemm) return {dtype, gemmScalesShape(spec.nominal, spec.scaling, direction)};
  const BlockShape grid = blockGridOf(spec.nominal, spec.scaling, direction);
  return {dtype, {grid.rows, grid.cols}};
}

NamedTensors toTensors(std::string_view name, const QuantizedTensor& tensor) {
  NamedTensors tensors = {{fmt::format("{}.spec", name), bytesOf(toJson(tensor.spec).dump())}};
  for (const Direction direction : {Direction::Rowwise, Direction::Columnwise}) {
    const std::optional<QuantizedCopy>& copy = tensor.copy(direction);
    if (!copy) continue;
    const std::string prefix = fmt::format("{}.{}", name, Parts::prefixOf(direction));
    tensors.emplace_back(prefix + "data", copy->data);
    tensors.emplace_back(prefix + "scale_inv", copy->scaleInv);
    if (copy->amax) tensors.emplace_back(prefix + "amax", scalarOf(*copy->amax));
  }
  return tensors;
}

Result<QuantizedTensor> quantizedFromTensors(std::string_view name, const NamedTensors& tensors) {
  const Parts parts(name, tensors);
  Result<QuantizedSpec> spec = parts.spec();
  if (!spec) return spec.error();
  QuantizedTensor tensor{.spec = std::move(*spec), .rowwise = std::nullopt, .columnwise = std::nullopt};
  for (const Direction direction : {Direction::Rowwise, Direction::Columnwise}) {
    Result<std::optional<QuantizedCopy>> copy = parts.copy(tensor.spec, direction);
    if (!copy) return copy.error();
    tensor.copy(direction) = std::move(*copy);
  }
  return tensor;
}

}  // namespace fuseline
