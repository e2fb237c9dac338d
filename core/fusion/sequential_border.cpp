// Finds the Sequentials around two ops, by the way from one to the other.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/sequential_border.h"

#include "core/fusion/node_name.h"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

using Sequentials = std::vector<const Sequential*>;

/// From the innermost on.
Sequentials sequentialsAround(const Graph& graph, NodeId id) {
  Sequentials around;
  for (int index = graph.node(id).sequential; index >= 0; index = around.back()->parent)
    around.push_back(&graph.sequentials()[static_cast<std::size_t>(index)]);
  return around;
}

/// In the order in which a tensor on its way from the one op to the other passes them.
Sequentials bordersBetween(const Graph& graph, NodeId from, NodeId to) {
  Sequentials left = sequentialsAround(graph, from);
  Sequentials entered = sequentialsAround(graph, to);
  while (!left.empty() && !entered.empty() && left.back() == entered.back()) {
    left.pop_back();
    entered.pop_back();
  }
  left.insert(left.end(), entered.rbegin(), entered.rend());
  return left;
}

std::string pathsOf(const Sequentials& borders) {
  std::vector<std::string> paths;
  for (const Sequential* border : borders) paths.push_back(border->path);
  return fmt::format("{}", fmt::join(paths, " and "));
}

/// Inside a block the edit goes to the block, and so to all of its instances.
Edit without(const Sequential& border) {
  Edit edit = SetAttribute{.id = border.path.substr(border.path.rfind('.') + 1), .name = kSequentialAttribute};
  return border.block.empty() ? edit : EditInBlock{border.block, {std::move(edit)}};
}

}  // namespace

bool hasBorderBetween(const Graph& graph, NodeId from, NodeId to) {
  return graph.node(from).sequential != graph.node(to).sequential;
}

std::string borderText(const Graph& graph, NodeId from, NodeId to) {
  const Sequentials borders = bordersBetween(graph, from, to);
  return fmt::format(
      "Between {} and {} is the boundary of {}, which {} a nested te.ops.Sequential; no fusion crosses it.",
      nameOf(graph, from), nameOf(graph, to), pathsOf(borders), borders.size() == 1 ? "is" : "are each");
}

Repair withoutBorders(const Graph& graph, NodeId from, NodeId to) {
  const Sequentials borders = bordersBetween(graph, from, to);
  const std::string label = fmt::format("Switch {} off for {}", kSequentialAttribute, pathsOf(borders));
  if (borders.size() == 1) return {label, without(*borders.front())};
  EditGroup group{.label = label};
  for (const Sequential* border : borders) group.edits.push_back(without(*border));
  return {label, std::move(group)};
}

}  // namespace fuseline
