// Names the environment variable of a rule, or the hazard of an op in place.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/te_caveat.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

std::string teCaveat(const Graph& graph, const FusionRule& rule, std::span<const NodeId> nodes,
                     const std::vector<InPlaceHazard>& hazards) {
  if (!rule.teVariable.empty()) return fmt::format("in TransformerEngine only with {}=1", rule.teVariable);
  for (const InPlaceHazard& hazard : hazards)
    if (std::ranges::find(nodes, hazard.node) != nodes.end())
      return fmt::format("not fused in the module of `export --to te`, which sets in_place of {} to false: {}",
                         graph.node(hazard.node).id, hazard.reason);
  return {};
}

}  // namespace fuseline
