// The op's id and its type.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/node_name.h"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

std::string nameOf(const Graph& graph, NodeId id) {
  return fmt::format("{} ({})", graph.node(id).id, graph.node(id).operation->name);
}

std::string idsOf(const Graph& graph, std::span<const NodeId> nodes, std::string_view separator) {
  constexpr std::size_t kMostNamed = 16;
  constexpr std::size_t kNamedOfMore = 8;
  const std::size_t numNamed = nodes.size() > kMostNamed ? kNamedOfMore : nodes.size();
  std::vector<std::string_view> ids;
  for (const NodeId id : nodes.first(numNamed)) ids.push_back(graph.node(id).id);
  const std::string rest = numNamed < nodes.size() ? fmt::format(" and {} more", nodes.size() - numNamed) : "";
  return fmt::format("{}{}", fmt::join(ids, separator), rest);
}

}  // namespace fuseline
