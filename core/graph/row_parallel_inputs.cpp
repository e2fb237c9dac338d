// Follows the main input of row-parallel layers upstream.
// SPDX-License-Identifier: Apache-2.0
#include "core/graph/row_parallel_inputs.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

namespace fuseline {

namespace {

bool makesWholeRows(const Node& node) {
  constexpr std::array<std::string_view, 3> kNorms = {"RMSNorm", "LayerNorm", "L2Normalization"};
  if (std::ranges::count(kNorms, node.operation->name) > 0) return true;
  return node.operation->name == "BasicLinear" && node.attributes.text("tensor_parallel_mode") == "none";
}

bool passesRowsOn(const Node& node) {
  constexpr std::array<std::string_view, 4> kPassing = {"Bias", "Identity", "Quantize", "Dropout"};
  return node.operation->isElementwise() || std::ranges::count(kPassing, node.operation->name) > 0;
}

/// A row-parallel layer consists of a GEMM and its sum over the ranks, "l.linear" and "l.sum".
std::set<std::string> summedLayers(const Graph& graph) {
  std::set<std::string> paths;
  for (const Node& node : graph.nodes())
    if (node.id == node.path + ".sum") paths.insert(node.path);
  return paths;
}

/// -1: shares, or not known.
NodeId sourceOfWholeRows(const Graph& graph, const std::set<std::string>& rowParallel, ValueId value) {
  for (NodeId id = graph.value(value).producer; id >= 0; id = graph.value(graph.node(id).inputs.front()).producer) {
    const Node& node = graph.node(id);
    if (rowParallel.contains(node.path)) return -1;
    if (makesWholeRows(node)) return id;
    if (!passesRowsOn(node) || node.inputs.empty()) return -1;
  }
  return -1;
}

}  // namespace

std::vector<WholeRows> wholeRowsIntoRowParallel(const Graph& graph) {
  const std::set<std::string> rowParallel = summedLayers(graph);
  std::vector<WholeRows> found;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    if (node.operation->name != "BasicLinear") continue;
    if (!rowParallel.contains(node.path) && node.attributes.text("tensor_parallel_mode") != "row") continue;
    const NodeId source = sourceOfWholeRows(graph, rowParallel, node.inputs.front());
    if (source < 0) continue;
    found.push_back({id, source, graph.value(graph.node(source).outputs.front()).spec.cols()});
  }
  return found;
}

}  // namespace fuseline
