// One pass over the nodes.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/import/folded_codes.h"

#include "core/export/onnx/onnx_reading.h"
#include "core/export/onnx/onnx_weights.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace fuseline {

namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 20;

/// Tensors that products read as their second factor.
std::set<std::string> factorsOf(const ::onnx::GraphProto& graph) {
  std::set<std::string> factors;
  for (const auto& node : graph.node())
    if (node.op_type() == "MatMul" || node.op_type() == "Gemm") factors.insert(inputOf(node, 1));
  for (const auto& node : graph.node())
    if (node.op_type() == "Transpose" && node.output_size() > 0 && factors.contains(node.output(0)))
      factors.insert(inputOf(node, 0));
  return factors;
}

std::optional<::onnx::TensorProto> dequantized(const OnnxReading& graph, const ::onnx::NodeProto& node,
                                               const std::filesystem::path& folder) {
  const auto* const codes = graph.constant(inputOf(node, 0));
  const auto* const scale = graph.constant(inputOf(node, 1));
  const auto* const zeroPoint = graph.constant(inputOf(node, 2));
  const std::optional<DType> dtype = scale ? floatTypeOf(scale->data_type()) : std::nullopt;
  const std::int64_t blockSize = integerOf(node, "block_size", 0);
  const bool isKnown = codes && dtype && (scale->dims_size() <= 1 || blockSize > 0);
  if (!isKnown || (!zeroPoint && !inputOf(node, 2).empty()) || numElements(shapeOf(*codes)) > kMostElements)
    return std::nullopt;
  const std::int64_t axis = integerOf(node, "axis", 1);
  const FoundWeight weight{
      .constant = codes,
      .codes = WeightCodes{scale, zeroPoint, axis < 0 ? axis + codes->dims_size() : axis, blockSize}};
  const Result<Tensor> numbers = readWeight(weight, {.dtype = *dtype, .shape = shapeOf(*codes)}, folder);
  if (!numbers) return std::nullopt;
  ::onnx::TensorProto constant;
  constant.set_name(node.output(0));
  constant.set_data_type(scale->data_type());
  *constant.mutable_dims() = codes->dims();
  constant.set_raw_data(numbers->data.data(), numbers->data.size());
  return constant;
}

using Constants = ::google::protobuf::RepeatedPtrField<::onnx::TensorProto>;

/// Replaces nodes by the constants that they compute. Returns whether there were any.
template <class Function>
bool foldNodes(::onnx::GraphProto& graph, const char* type, const Function& constantOf) {
  ::google::protobuf::RepeatedPtrField<::onnx::NodeProto> kept;
  Constants constants;
  for (const auto& node : graph.node()) {
    std::optional<::onnx::TensorProto> constant;
    if (node.op_type() == type && node.output_size() > 0) constant = constantOf(node);
    if (constant)
      *constants.Add() = std::move(*constant);
    else
      *kept.Add() = node;
  }
  if (constants.empty()) return false;
  graph.mutable_node()->Swap(&kept);
  for (auto& constant : constants) *graph.add_initializer() = std::move(constant);
  return true;
}

// ---- QuantizeLinear of a constant, as training for quantization leaves it

template <class Code>
std::optional<::onnx::TensorProto> quantizedAs(const Tensor& x, const Tensor& scale, const std::vector<std::byte>& zero,
                                               std::int64_t axis) {
  const std::vector<double> values = x.toDoubles(), scales = scale.toDoubles();
  const std::size_t numZeros = zero.size() / sizeof(Code);
  std::vector<Code> zeros(numZeros);
  if (numZeros > 0) std::memcpy(zeros.data(), zero.data(), zero.size());
  std::size_t inner = 1, extent = 1;
  for (std::size_t i = 0; i < x.spec.shape.size(); ++i) {
    if (static_cast<std::int64_t>(i) == axis) extent = static_cast<std::size_t>(x.spec.shape[i]);
    if (static_cast<std::int64_t>(i) > axis) inner *= static_cast<std::size_t>(x.spec.shape[i]);
  }
  for (const std::size_t count : {scales.size(), numZeros})
    if (count > 1 && count != extent) return std::nullopt;
  if (scales.empty()) return std::nullopt;
  std::vector<Code> codes(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t index = i / inner % extent;
    const auto divisor = static_cast<float>(scales[scales.size() == 1 ? 0 : index]);
    const double shift = numZeros == 0 ? 0.0 : static_cast<double>(zeros[numZeros == 1 ? 0 : index]);
    const double code = std::nearbyint(static_cast<double>(static_cast<float>(values[i]) / divisor)) + shift;
    if (std::isnan(code)) return std::nullopt;
    codes[i] = static_cast<Code>(std::clamp(code, static_cast<double>(std::numeric_limits<Code>::min()),
                                            static_cast<double>(std::numeric_limits<Code>::max())));
  }
  ::onnx::TensorProto constant;
  constant.set_raw_data(codes.data(), codes.size() * sizeof(Code));
  for (const std::int64_t each : x.spec.shape) constant.add_dims(each);
  return constant;
}

std::optional<Tensor> tensorOf(const ::onnx::TensorProto* constant, const std::filesystem::path& folder) {
  const std::optional<DType> dtype = constant ? floatTypeOf(constant->data_type()) : std::nullopt;
  if (!dtype) return std::nullopt;
  Result<Tensor> read = readWeight({.constant = constant}, {.dtype = *dtype, .shape = shapeOf(*constant)}, folder);
  return read ? std::optional(std::move(*read)) : std::nullopt;
}

std::optional<::onnx::TensorProto> quantized(const OnnxReading& graph, const ::onnx::NodeProto& node,
                                             const std::filesystem::path& folder) {
  const auto x = tensorOf(graph.constant(inputOf(node, 0)), folder);
  const auto scale = tensorOf(graph.constant(inputOf(node, 1)), folder);
  const auto* const zeroPoint = graph.constant(inputOf(node, 2));
  const bool isKnown = x && scale && scale->spec.shape.size() <= 1 && (zeroPoint || inputOf(node, 2).empty());
  if (!isKnown || integerOf(node, "block_size", 0) != 0) return std::nullopt;
  const auto zero = zeroPoint ? elementBytes(*zeroPoint, folder) : std::vector<std::byte>();
  if (!zero) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(x->spec.shape.size());
  std::int64_t axis = integerOf(node, "axis", 1);
  if (axis < 0) axis += rank;
  const auto type = zeroPoint ? zeroPoint->data_type()
                              : static_cast<std::int32_t>(integerOf(node, "output_dtype", ::onnx::TensorProto::UINT8));
  std::optional<::onnx::TensorProto> codes;
  switch (type) {
    case ::onnx::TensorProto::INT8: codes = quantizedAs<std::int8_t>(*x, *scale, *zero, axis); break;
    case ::onnx::TensorProto::UINT8: codes = quantizedAs<std::uint8_t>(*x, *scale, *zero, axis); break;
    case ::onnx::TensorProto::INT16: codes = quantizedAs<std::int16_t>(*x, *scale, *zero, axis); break;
    case ::onnx::TensorProto::UINT16: codes = quantizedAs<std::uint16_t>(*x, *scale, *zero, axis); break;
    default: break;
  }
  if (!codes) return std::nullopt;
  codes->set_name(node.output(0));
  codes->set_data_type(type);
  return codes;
}

}  // namespace

void standardizeQuantization(::onnx::GraphProto& graph) {
  const OnnxReading reading(graph);
  for (auto& node : *graph.mutable_node()) {
    const bool isDequantizing = node.op_type() == "DequantizeLinear";
    if (node.domain() != "com.microsoft" || !(isDequantizing || node.op_type() == "QuantizeLinear")) continue;
    const auto* const codes = isDequantizing ? reading.constant(inputOf(node, 0)) : nullptr;
    const auto* const zeroPoint = reading.constant(inputOf(node, 2));
    if (codes || !zeroPoint || elementSize(zeroPoint->data_type()) == 1) node.clear_domain();
  }
}

void foldSmallCodes(::onnx::GraphProto& graph, const std::filesystem::path& folder) {
  // Several layers may share a constant that each quantizes again.
  constexpr int kMostRounds = 4;
  bool isFolded = true;
  for (int round = 0; round < kMostRounds && isFolded; ++round) {
    isFolded =
        foldNodes(graph, "QuantizeLinear", [reading = OnnxReading(graph), &folder](const ::onnx::NodeProto& node) {
          return quantized(reading, node, folder);
        });
    const OnnxReading reading(graph);
    const std::set<std::string> factors = factorsOf(graph);
    const bool isRead = foldNodes(graph, "DequantizeLinear", [&](const ::onnx::NodeProto& node) {
      return factors.contains(node.output(0)) ? std::nullopt : dequantized(reading, node, folder);
    });
    isFolded = isFolded || isRead;
  }
}

}  // namespace fuseline
