// Prints an ONNX graph.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_listing.h"

#include "core/support/hash.h"

#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

std::string extentText(const ::onnx::TensorShapeProto_Dimension& extent) {
  if (extent.has_dim_param()) return extent.dim_param();
  return extent.has_dim_value() ? fmt::format("{}", extent.dim_value()) : "?";
}

std::string typeText(const ::onnx::ValueInfoProto& info) {
  const auto& tensor = info.type().tensor_type();
  std::vector<std::string> extents;
  for (const auto& extent : tensor.shape().dim()) extents.push_back(extentText(extent));
  return fmt::format("{}[{}]", onnxTypeName(tensor.elem_type()), fmt::join(extents, ", "));
}

std::string typeText(const ::onnx::TensorProto& tensor) {
  return fmt::format("{}[{}]", onnxTypeName(tensor.data_type()), fmt::join(tensor.dims(), ", "));
}

std::string valueText(const ::onnx::AttributeProto& attribute) {
  switch (attribute.type()) {
    case ::onnx::AttributeProto::INT: return fmt::format("{}", attribute.i());
    case ::onnx::AttributeProto::FLOAT: return fmt::format("{}", attribute.f());
    case ::onnx::AttributeProto::STRING: return fmt::format("\"{}\"", attribute.s());
    case ::onnx::AttributeProto::INTS: return fmt::format("[{}]", fmt::join(attribute.ints(), ", "));
    default: return "...";
  }
}

std::string nodeText(const ::onnx::NodeProto& node) {
  std::vector<std::string> arguments(node.input().begin(), node.input().end());
  for (const auto& attribute : node.attribute())
    arguments.push_back(fmt::format("{}={}", attribute.name(), valueText(attribute)));
  return fmt::format("{} = {}({})", fmt::join(node.output(), ", "), node.op_type(), fmt::join(arguments, ", "));
}

template <class Items, class Text>
std::string section(std::string_view title, const Items& items, Text text) {
  std::string lines;
  for (const auto& item : items) lines += fmt::format("  {}\n", text(item));
  return lines.empty() ? lines : fmt::format("{}\n{}", title, lines);
}

template <class Items>
std::string tensors(std::string_view title, const Items& items) {
  return section(title, items, [](const auto& item) { return fmt::format("{}: {}", item.name(), typeText(item)); });
}

}  // namespace

std::string onnxListing(const ::onnx::GraphProto& graph) {
  return tensors("inputs", graph.input()) + section("nodes", graph.node(), nodeText) +
         tensors("outputs", graph.output()) + tensors("initialisers", graph.initializer());
}

std::string onnxGraphHash(const ::onnx::GraphProto& graph) {
  std::string text = onnxListing(graph);
  for (const auto& tensor : graph.initializer())
    if (tensor.dims_size() == 0 || tensor.data_type() == ::onnx::TensorProto::INT64) text += tensor.raw_data();
  return fmt::format("fnv1a64:{:016x}", fnv1a64(text));
}

}  // namespace fuseline
