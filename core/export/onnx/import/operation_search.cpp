// A breadth-first walk over the producers of tensors.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/import/operation_search.h"

#include "core/export/onnx/onnx_node_names.h"

#include <algorithm>
#include <array>
#include <functional>

#include <fmt/format.h>

namespace fuseline {

namespace {

bool isViewNode(const ::onnx::NodeProto& node) {
  constexpr std::array kTypes = {"Reshape", "Flatten", "Squeeze", "Unsqueeze"};
  return node.domain().empty() && std::ranges::find(kTypes, node.op_type()) != kTypes.end();
}

/// Keeps inputs and outputs of an op, if it is a layer or one of these is kept.
void keepNeighbours(const FoundGraph& graph, const ImportedOperation& each, std::set<std::string>& kept) {
  const auto isKept = [&](const auto& input) { return kept.contains(graph.reading.source(input.second)); };
  const std::vector<std::string> outputs = outputsOf(each.found, each.tensor);
  const bool isRead = std::ranges::any_of(outputs, [&](const std::string& output) { return kept.contains(output); });
  if (!each.found.dtype && !each.found.isWhole && !isRead && std::ranges::none_of(each.found.inputs, isKept)) return;
  kept.insert(outputs.begin(), outputs.end());
  for (const auto& [port, tensor] : each.found.inputs)
    if (graph.made.contains(graph.reading.source(tensor))) kept.insert(graph.reading.source(tensor));
}

void leaveOutOperation(FoundGraph& graph, const ImportedOperation& each) {
  std::vector<std::string> inputs;
  for (const auto& [port, tensor] : each.found.inputs) inputs.push_back(tensor);
  graph.leaveOut(*graph.reading.maker(each.tensor), each.tensor, inputs);
  for (const std::string& output : outputsOf(each.found, each.tensor)) {
    graph.made.erase(output);
    graph.ports.erase(output);
  }
}

}  // namespace

void OperationSearch::run(std::optional<DType> dtype) {
  m_dtype = dtype;
  std::deque<std::string> wanted;
  for (const auto& output : m_graph.reading.graph().output()) wanted.push_back(output.name());
  for (; !wanted.empty(); wanted.pop_front()) {
    const std::string& tensor = m_graph.reading.source(wanted.front());
    if (m_graph.ports.contains(tensor) || !m_seen.insert(tensor).second) continue;
    std::optional<FoundOperation> found;
    if (computesFloats(tensor) && !m_known.tensors.contains(tensor)) found = operationOf(tensor);
    if (found) {
      for (const auto& [port, input] : found->inputs) wanted.push_back(input);
      add(tensor, std::move(*found));
    } else {
      addUnknown(tensor, wanted);
    }
  }
  m_graph.sortOperations();
}

/// Any node that only changes the shape of a tensor is a Reshape, to the known part of the shape.
std::optional<FoundOperation> OperationSearch::operationOf(const std::string& tensor) {
  std::optional<FoundOperation> found = operationAt(m_graph.reading, tensor);
  const ::onnx::NodeProto* const node = m_graph.reading.maker(tensor);
  const bool isView = found ? found->operation == "Reshape" : node && isViewNode(*node);
  const auto* const type = m_graph.reading.type(tensor);
  if (!isView || !type) return found;
  if (!found) found = FoundOperation{.operation = "Reshape", .inputs = {{"x", inputOf(*node, 0)}}};
  found->attributes["shape"] = m_graph.symbols.shapeOf(type->shape());
  return found;
}

/// Sums and products of extents are no ops.
bool OperationSearch::computesFloats(const std::string& tensor) const {
  const std::int32_t type = m_graph.reading.elementType(tensor);
  return type == 0 || floatTypeOf(type);
}

void OperationSearch::add(const std::string& tensor, FoundOperation found) {
  for (const std::string& output : outputsOf(found, tensor)) {
    m_graph.ports.emplace(output, "");  // until it has a name
    m_graph.made.insert(output);
    m_seen.insert(output);
  }
  // Exporters fold the conversion of a weight to f32, and convert the results of it back.
  const auto dtype = m_graph.reading.readAs(tensor);
  const auto fits = [&](const FoundWeight& weight) { return !weight.constant || isExactIn(*weight.constant, *dtype); };
  if (dtype && found.dtype == DType::F32 && std::ranges::all_of(found.weights, fits)) found.dtype = dtype;
  m_isMixed = m_isMixed || (found.dtype && m_dtype && *found.dtype != *m_dtype);
  m_graph.operations.push_back({.id = "",
                                .tensor = found.outputs.empty() ? tensor : found.outputs.front(),
                                .found = std::move(found),
                                .position = m_graph.reading.position(tensor)});
}

/// Continues upstream of it, so that all are named at once.
void OperationSearch::addUnknown(const std::string& tensor, std::deque<std::string>& wanted) {
  const OnnxReading& reading = m_graph.reading;
  const ::onnx::NodeProto* const node = reading.maker(tensor);
  if (!node) {
    if (!reading.type(tensor)) m_graph.unknown.push_back(shown(tensor));
    return;
  }
  if (reading.constant(tensor)) return m_graph.unknown.push_back(fmt::format("{} (a constant)", shown(tensor)));
  if (!m_unknownNodes.insert(node).second) return;
  std::vector<std::string> inputs;
  for (const std::string& input : readBy(*node))
    if (!reading.constant(input)) inputs.push_back(input);
  wanted.insert(wanted.end(), inputs.begin(), inputs.end());
  m_graph.leaveOut(*node, tensor, inputs);
}

void leaveOutIslands(FoundGraph& graph) {
  std::set<std::string> kept;  // tensors
  for (const auto& [tensor, port] : graph.ports)
    if (!graph.made.contains(tensor)) kept.insert(tensor);
  for (const auto& output : graph.reading.graph().output()) kept.insert(graph.reading.source(output.name()));
  for (std::size_t before = 0; before != kept.size();) {
    before = kept.size();
    // In both directions, so that a chain takes one pass.
    for (const ImportedOperation& each : graph.operations) keepNeighbours(graph, each, kept);
    for (auto each = graph.operations.rbegin(); each != graph.operations.rend(); ++each)
      keepNeighbours(graph, *each, kept);
  }
  const auto isKept = [&](const ImportedOperation& each) { return kept.contains(each.tensor); };
  if (std::ranges::none_of(graph.operations, isKept)) return;  // then there is nothing else
  for (const ImportedOperation& each : graph.operations)
    if (!isKept(each)) leaveOutOperation(graph, each);
  std::erase_if(graph.operations, std::not_fn(isKept));
}

}  // namespace fuseline
