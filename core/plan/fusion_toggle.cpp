// Chooses the rules to switch off, or to switch on again.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/fusion_toggle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace fuseline {

namespace {

bool touches(const Graph& graph, const Attempt& attempt, const std::set<std::string>& selection) {
  return std::ranges::any_of(attempt.nodes, [&](NodeId id) { return selection.contains(graph.node(id).owner); });
}

/// Each name once.
std::string namesOf(const std::vector<const Attempt*>& attempts) {
  std::vector<std::string_view> names;
  for (const Attempt* attempt : attempts)
    if (std::ranges::find(names, attempt->rule->name) == names.end()) names.push_back(attempt->rule->name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::optional<FusionToggle> fusionToggle(const PipelineDocument& document, const Analysis& analysis,
                                         const std::set<std::string>& selection, const std::string& rule) {
  const Graph& graph = analysis.graph();
  std::vector<const Attempt*> applied;
  std::vector<const Attempt*> off;
  for (const Attempt& attempt : analysis.report.attempts) {
    const bool isMeant = rule.empty() || attempt.rule->name == rule;
    if (!isMeant || !touches(graph, attempt, selection)) continue;
    if (attempt.outcome == Outcome::Fused) applied.push_back(&attempt);
    if (isOffHere(document, graph, attempt)) off.push_back(&attempt);
  }
  if (!applied.empty())
    return FusionToggle{switchOffHere(document, graph, applied),
                        fmt::format("Switched off here: {}.", namesOf(applied))};
  if (off.empty()) return std::nullopt;
  return FusionToggle{switchOnHere(document, graph, off), fmt::format("Switched on here: {}.", namesOf(off))};
}

}  // namespace fuseline
