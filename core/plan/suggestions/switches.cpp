// Fusions that the document's fusion section switches off, and fusions that only apply on request.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/fusion_edits.h"
#include "core/plan/suggestions/sources.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

Proposal proposalOf(std::string label, Edit edit) {
  return {.source = "switches", .repair = {std::move(label), std::move(edit)}};
}

void addRemovals(const PipelineDocument& document, std::vector<Proposal>& proposals) {
  const Json& fusion = document.fusion();
  if (!fusion.is_object() || !fusion.contains("without") || !fusion["without"].is_array()) return;
  for (const Json& entry : fusion["without"])
    if (entry.is_string())
      proposals.push_back(proposalOf(fmt::format("Switch {} on again", entry.get<std::string>()),
                                     removeRuleSwitch(document, "without", entry)));
}

void addWholeBook(const PipelineDocument& document, std::vector<Proposal>& proposals) {
  Json fusion = document.fusion();
  if (!fusion.is_object() || !fusion.contains("rules") || fusion["rules"] != "te") return;
  fusion["rules"] = "all";
  Proposal proposal = proposalOf("Use the whole rule set", SetFusion{std::move(fusion)});
  proposal.caution = "TransformerEngine does not have these fusions, so an exported module runs without them.";
  proposals.push_back(std::move(proposal));
}

/// The same op of a block, in whichever of its instances.
std::string placeOf(const Graph& graph, const Attempt& attempt) {
  const Node& node = graph.node(attempt.nodes.front());
  return node.block.empty() ? node.id : node.block + '/' + node.id.substr(node.id.rfind('.') + 1);
}

using Attempts = std::vector<const Attempt*>;

std::vector<Attempts> requestsIn(const Analysis& analysis) {
  std::map<std::pair<const FusionRule*, std::string>, Attempts> places;
  for (const Attempt& attempt : analysis.report.attempts)
    if (attempt.outcome == Outcome::OnRequest)
      places[{attempt.rule, placeOf(analysis.graph(), attempt)}].push_back(&attempt);
  std::vector<Attempts> requests;
  for (auto& [place, attempts] : places) requests.push_back(std::move(attempts));
  std::ranges::sort(requests, {}, [](const Attempts& attempts) { return attempts.front(); });
  return requests;
}

std::string labelOf(const Graph& graph, const Attempts& attempts) {
  std::string label =
      fmt::format("Use {} at {}", attempts.front()->rule->name, graph.node(attempts.front()->nodes.front()).id);
  if (attempts.size() > 1) label += fmt::format(", and {} more in other instances of its block", attempts.size() - 1);
  return label;
}

void addRequests(const SuggestionContext& context, std::vector<Proposal>& proposals) {
  const Graph& graph = context.analysis.graph();
  for (const Attempts& attempts : requestsIn(context.analysis)) {
    std::optional<Edit> edit = useHere(context.document, context.analysis, attempts);
    if (!edit) continue;
    Proposal proposal = proposalOf(labelOf(graph, attempts), std::move(*edit));
    proposal.node = graph.node(attempts.front()->nodes.front()).owner;
    proposal.caution = attempts.front()->rule->price;
    proposal.isTradeForMemory = true;
    proposals.push_back(std::move(proposal));
  }
}

}  // namespace

std::vector<Proposal> suggestion_sources::switches(const SuggestionContext& context) {
  std::vector<Proposal> proposals;
  addRemovals(context.document, proposals);
  addWholeBook(context.document, proposals);
  addRequests(context, proposals);
  return proposals;
}

}  // namespace fuseline
