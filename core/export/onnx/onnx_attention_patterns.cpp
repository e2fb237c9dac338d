// Nodes that stand for ops of Fuseline, and those that join and split tensors along their last axis.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_attention.h"
#include "core/export/onnx/onnx_pattern_parts.h"

namespace fuseline::patterns {

namespace {

std::vector<std::string> portsOf(const std::string& text) {
  std::vector<std::string> ports;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    ports.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return ports;
}

}  // namespace

Found wholeOperation(Reading graph, Name tensor) {
  const ::onnx::NodeProto* const node = graph.maker(tensor);
  if (!node || node->domain() != kFuselineDomain) return std::nullopt;
  FoundOperation found{.operation = node->op_type(),
                       .attributes = Json::parse(textOf(*node, "attributes", "{}"), nullptr, false),
                       .note = textOf(*node, "note", ""),
                       .outputs = {node->output().begin(), node->output().end()},
                       .isWhole = true};
  const std::vector<std::string> ports = portsOf(textOf(*node, "ports", "x"));
  if (!found.attributes.is_object() || ports.size() != static_cast<std::size_t>(node->input_size()))
    return std::nullopt;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const std::string& input = node->input(static_cast<int>(i));
    if (ports[i] == kSinksPort)
      found.weights.push_back({.parameter = ports[i], .constant = weight(graph, input), .isSpread = true});
    else
      found.inputs.emplace_back(ports[i], input);
  }
  return found;
}

Found splitColumns(Reading graph, Name tensor) {
  const auto* const node = graph.makerOf("Split", tensor);
  if (!node || graph.axisFromEnd(inputOf(*node, 0), integerOf(*node, "axis", 0)) != -1) return std::nullopt;
  Json sizes = Json::array();
  for (const std::string& output : node->output()) {
    const std::optional<std::int64_t> extent = lastExtent(graph, output);
    if (!extent) return std::nullopt;
    sizes.push_back(*extent);
  }
  return FoundOperation{.operation = "Split",
                        .attributes = {{"sizes", sizes}},
                        .inputs = {{"x", inputOf(*node, 0)}},
                        .outputs = {node->output().begin(), node->output().end()}};
}

Found joinColumns(Reading graph, Name tensor) {
  const auto* const node = graph.makerOf("Concat", tensor);
  if (!node || node->input_size() < 2 || graph.axisFromEnd(node->output(0), integerOf(*node, "axis", 0)) != -1)
    return std::nullopt;
  FoundOperation found{.operation = "Concat", .attributes = {{"num_inputs", node->input_size()}}};
  for (const std::string& input : node->input()) {
    if (graph.constant(input) || !floatTypeOf(graph.elementType(input))) return std::nullopt;
    found.inputs.emplace_back(found.inputs.empty() ? "x" : "x" + std::to_string(found.inputs.size()), input);
  }
  return found;
}

}  // namespace fuseline::patterns
