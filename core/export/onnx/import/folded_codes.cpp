// One pass over the nodes.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/import/folded_codes.h"

#include "core/export/onnx/onnx_reading.h"
#include "core/export/onnx/onnx_weights.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>

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
  const bool isKnown = codes && dtype && scale->dims_size() <= 1 && (zeroPoint || inputOf(node, 2).empty());
  if (!isKnown || integerOf(node, "block_size", 0) != 0 || numElements(shapeOf(*codes)) > kMostElements)
    return std::nullopt;
  const std::int64_t axis = integerOf(node, "axis", 1);
  const FoundWeight weight{.constant = codes,
                           .codes = WeightCodes{scale, zeroPoint, axis < 0 ? axis + codes->dims_size() : axis}};
  const Result<Tensor> numbers = readWeight(weight, {.dtype = *dtype, .shape = shapeOf(*codes)}, folder);
  if (!numbers) return std::nullopt;
  ::onnx::TensorProto constant;
  constant.set_name(node.output(0));
  constant.set_data_type(scale->data_type());
  *constant.mutable_dims() = codes->dims();
  constant.set_raw_data(numbers->data.data(), numbers->data.size());
  return constant;
}

}  // namespace

void foldSmallCodes(::onnx::GraphProto& graph, const std::filesystem::path& folder) {
  const OnnxReading reading(graph);
  const std::set<std::string> factors = factorsOf(graph);
  ::google::protobuf::RepeatedPtrField<::onnx::NodeProto> kept;
  ::google::protobuf::RepeatedPtrField<::onnx::TensorProto> constants;
  for (const auto& node : graph.node()) {
    const bool isDequantizing = node.op_type() == "DequantizeLinear" && node.output_size() > 0;
    std::optional<::onnx::TensorProto> constant;
    if (isDequantizing && !factors.contains(node.output(0))) constant = dequantized(reading, node, folder);
    if (constant)
      *constants.Add() = std::move(*constant);
    else
      *kept.Add() = node;
  }
  if (constants.empty()) return;
  graph.mutable_node()->Swap(&kept);
  for (auto& constant : constants) *graph.add_initializer() = std::move(constant);
}

}  // namespace fuseline
