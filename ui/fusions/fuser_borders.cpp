// Counts the runs of ops that are in one Sequential, and finds the wires from one run to another.
// SPDX-License-Identifier: Apache-2.0
#include "ui/fusions/fuser_borders.h"

#include "core/fusion/sequential_border.h"
#include "ui/theme/format.h"

#include <set>
#include <utility>

namespace fuseline::ui {

namespace {

/// By node.
std::vector<int> fusersOf(const Graph& graph) {
  std::vector<int> fusers;
  for (const Node& node : graph.nodes()) {
    const auto id = static_cast<NodeId>(fusers.size());
    const bool goesOn = id > 0 && graph.node(id - 1).sequential == node.sequential;
    fusers.push_back(fusers.empty() ? 1 : goesOn ? fusers.back() : fusers.back() + 1);
  }
  return fusers;
}

}  // namespace

std::vector<FuserBorder> fuserBorders(const Graph& graph) {
  std::vector<FuserBorder> borders;
  if (graph.sequentials().empty()) return borders;
  const std::vector<int> fusers = fusersOf(graph);
  const auto fuserOf = [&](NodeId id) { return fusers[static_cast<std::size_t>(id)]; };
  std::set<std::pair<std::string, std::string>> seen;
  for (const Value& value : graph.values()) {
    if (value.producer < 0) continue;
    for (const Use& use : value.uses) {
      const std::string& from = graph.node(value.producer).owner;
      const std::string& to = graph.node(use.node).owner;
      if (from == to || !hasBorderBetween(graph, value.producer, use.node) || !seen.emplace(from, to).second) continue;
      borders.push_back({from, to, fuserOf(value.producer), fuserOf(use.node),
                         toQt(borderText(graph, value.producer, use.node)).toHtmlEscaped()});
    }
  }
  return borders;
}

}  // namespace fuseline::ui
