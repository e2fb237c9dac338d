// Walks from the outputs of an op up to its inputs.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/import/node_table.h"

#include "core/export/onnx/onnx_node_names.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <utility>

namespace fuseline {

namespace {

/// By their positions in the graph.
std::map<int, const ::onnx::NodeProto*> nodesOf(const OnnxReading& reading, const ImportedOperation& op) {
  std::set<std::string> seen;
  for (const auto& [port, tensor] : op.found.inputs) seen.insert(reading.source(tensor));
  std::vector<std::string> open = outputsOf(op.found, op.tensor);
  std::map<int, const ::onnx::NodeProto*> nodes;
  while (!open.empty()) {
    const std::string tensor = reading.source(open.back());
    open.pop_back();
    const ::onnx::NodeProto* const node = seen.insert(tensor).second ? reading.maker(tensor) : nullptr;
    if (!node || reading.constant(tensor)) continue;
    nodes.emplace(reading.position(tensor), node);
    open.insert(open.end(), node->input().begin(), node->input().end());
  }
  return nodes;
}

std::string textOf(const ::onnx::NodeProto& node) {
  const std::string path = pathOf(node);
  return path.empty() ? shown(node.op_type()) : fmt::format("{} ({})", wholeText(path), shown(node.op_type()));
}

}  // namespace

std::vector<ImportedNodes> nodeTable(const FoundGraph& graph, const FoldedPlaces& places) {
  std::vector<ImportedNodes> table;
  for (const ImportedOperation& op : graph.operations) {
    ImportedNodes row{.op = places.of(op.id)};
    for (const auto& [position, node] : nodesOf(graph.reading, op)) row.nodes.push_back(textOf(*node));
    table.push_back(std::move(row));
  }
  return table;
}

}  // namespace fuseline
