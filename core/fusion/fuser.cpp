// OperationFuser: joint, then forward and backward rules.
//
// TransformerEngine's book is applied in order, each rule along the graph, and the first taker wins. From the whole
// book all legal fusions of a pass are collected, and the set of them that gains most is chosen (best_fusions.h).
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"

#include "core/fusion/best_fusions.h"
#include "core/fusion/fused_operands.h"
#include "core/fusion/lost_fusions.h"
#include "core/fusion/node_name.h"
#include "core/support/text.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

Result<void> checkSwitches(const RuleCatalog& rules, const std::vector<std::string>& entries, std::string_view verb) {
  for (const std::string& entry : entries) {
    const std::string name = entry.substr(0, entry.find('@'));
    if (rules.find(name)) continue;
    std::vector<std::string> names;
    for (const FusionRule* rule : rules.all()) names.push_back(rule->name);
    return Error{.message = fmt::format("\"{}\" {} a rule that does not exist{} `fuseline rules` lists them.", entry,
                                        verb, didYouMean(nearest(name, names))),
                 .kind = ErrorKind::Usage};
  }
  return {};
}

}  // namespace

Verdict hasItsOp(const Graph& graph, const std::string& entry) {
  const auto at = entry.find('@');
  if (at == std::string::npos) return Verdict::yes();
  const std::string place = entry.substr(at + 1);
  const auto& nodes = graph.nodes();
  if (std::ranges::any_of(nodes, [&](const Node& node) { return node.isAt(place); })) return Verdict::yes();
  std::vector<std::string> ids;
  for (const Node& node : nodes) ids.insert(ids.end(), {node.id, node.owner});
  const std::string near = nearest(place, ids);
  return Verdict::no(fmt::format("\"{}\" has no effect: expected an op of the pipeline after @, found {}{}", entry,
                                 place, didYouMean(near)));
}

std::string switchFor(const Graph& graph, const FusionRule& rule, std::span<const NodeId> nodes,
                      const std::vector<std::string>& entries) {
  for (const std::string& entry : entries) {
    const auto at = entry.find('@');
    if (entry.substr(0, at) != rule.name) continue;
    const auto isNamed = [&](NodeId id) { return graph.node(id).isAt(entry.substr(at + 1)); };
    if (at == std::string::npos || std::ranges::any_of(nodes, isNamed)) return entry;
  }
  return {};
}

std::string placeEntry(const Graph& graph, const Attempt& attempt) {
  return attempt.rule->name + "@" + graph.node(attempt.nodes.front()).id;
}

std::string requestFor(const Graph& graph, const Attempt& attempt) {
  if (attempt.outcome != Outcome::OnRequest && attempt.outcome != Outcome::MeasuredSlower) return {};
  return placeEntry(graph, attempt);
}

std::string shellExplanation(const Graph& graph, const Attempt& attempt) {
  const std::string request = requestFor(graph, attempt);
  return request.empty() ? attempt.explanation : attempt.explanation + " To use it: --with " + request + ".";
}

std::string_view outcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::Fused: return "fused";
    case Outcome::BrokenChain: return "broken chain";
    case Outcome::OutsideUse: return "outside use";
    case Outcome::ConditionFailed: return "condition failed";
    case Outcome::TakenByAnother: return "taken by another fusion";
    case Outcome::NoKernel: return "no kernel on this device";
    case Outcome::SwitchedOff: return "switched off";
    case Outcome::OnRequest: return "on request";
    case Outcome::MeasuredSlower: return "measured slower";
  }
  return "?";
}

bool gainsMore(const Attempt& a, const Attempt& b, const DeviceModel& device) {
  if (!a.saving || !b.saving) return a.saving && !b.saving;
  return exceeds(gainOf(*a.saving, a.measured.get()), gainOf(*b.saving, b.measured.get()), device);
}

/// The applied fusions come first, rule by rule, each along the graph: sortAttempts() sees to it.
const Attempt* attemptBehind(const FusionReport& report, const FusedOperation& entry) {
  const auto isFused = [](const Attempt& attempt) { return attempt.outcome == Outcome::Fused; };
  const auto end = std::ranges::partition_point(report.attempts, isFused);
  auto begin = report.attempts.begin();
  const auto isOf = [](const FusionRule* rule) { return [rule](const Attempt& a) { return a.rule == rule; }; };
  while (begin != end && begin->rule != entry.rule) begin = std::partition_point(begin, end, isOf(begin->rule));
  const auto ofRule = std::partition_point(begin, end, isOf(entry.rule));
  const auto startsBefore = [&](const Attempt& attempt) { return attempt.nodes.front() < entry.nodes.front(); };
  const auto made = std::find_if(std::partition_point(begin, ofRule, startsBefore), ofRule,
                                 [&](const Attempt& attempt) { return attempt.nodes == entry.nodes; });
  return made == ofRule ? nullptr : &*made;
}

std::string FusedOperation::name(const Graph& graph) const {
  return isFused() ? rule->name : graph.node(nodes.front()).operation->name;
}

std::string FusedOperation::kernelName(const Graph& graph) const {
  return isFused() ? rule->becomes : graph.node(nodes.front()).operation->kernelName();
}

std::string FusedOperation::note(const Graph& graph) const {
  if (ranks > 1) return {};
  std::vector<std::string> notes;
  for (const NodeId id : nodes)
    if (std::string own = graph.node(id).note(); !own.empty()) notes.push_back(std::move(own));
  return fmt::format("{}", fmt::join(notes, "; "));
}

FusionReport unfused(const Graph& graph) {
  const EntryList none(graph);
  FusionReport report{.forward = toList(graph, none, false)};
  if (graph.pass() == ExecutionMode::Training) report.backward = toList(graph, none, true);
  return report;
}

namespace {

/// Where an attempt stands in the report. Sorting these instead of the attempts moves each attempt only once.
struct Standing {
  bool isMiss = false;
  bool isPredicted = false;
  Gain gain;
  std::size_t rank = 0;  // of the rule
  NodeId start = -1;
  std::size_t index = 0;
};

/// Fusions in the order of the rule set and the pipeline, then misses by gain.
bool standsBefore(const Standing& a, const Standing& b, const DeviceModel& device) {
  const auto along = [](const Standing& standing) { return std::tuple(standing.rank, standing.start, standing.index); };
  if (a.isMiss != b.isMiss) return b.isMiss;
  if (!a.isMiss) return along(a) < along(b);
  if (a.isPredicted != b.isPredicted) return a.isPredicted;
  if (exceeds(a.gain, b.gain, device)) return true;
  return !exceeds(b.gain, a.gain, device) && along(a) < along(b);
}

std::vector<Standing> standingsOf(const std::vector<Attempt>& attempts, const RuleCatalog& rules) {
  std::map<const FusionRule*, std::size_t> ranks;
  for (const FusionRule* rule : rules.all()) ranks.emplace(rule, ranks.size());
  std::vector<Standing> standings;
  standings.reserve(attempts.size());
  for (const Attempt& attempt : attempts)
    standings.push_back({.isMiss = attempt.outcome != Outcome::Fused,
                         .isPredicted = attempt.saving.has_value(),
                         .gain = attempt.saving ? gainOf(*attempt.saving, attempt.measured.get()) : Gain{},
                         .rank = ranks.at(attempt.rule),
                         .start = attempt.nodes.front(),
                         .index = standings.size()});
  return standings;
}

}  // namespace

void sortAttempts(FusionReport& report, const RuleCatalog& rules) {
  std::vector<Standing> standings = standingsOf(report.attempts, rules);
  const auto before = [&](const Standing& a, const Standing& b) { return standsBefore(a, b, report.device); };
  // Most of them are in order where others have been added to a report.
  const auto others = std::ranges::is_sorted_until(standings, before);
  std::ranges::sort(others, standings.end(), before);
  std::ranges::inplace_merge(standings, others, before);
  std::vector<Attempt> sorted;
  sorted.reserve(standings.size());
  for (const Standing& standing : standings) sorted.push_back(std::move(report.attempts[standing.index]));
  report.attempts = std::move(sorted);
}

namespace {

/// A long chain was matched from its head; its tails are no attempts of their own.
bool isInside(const EntryList& entries, const FusionRule& rule, NodeId start) {
  const FusedOperation* entry = entries.entryOf(start);
  return entry && entry->rule == &rule && entry->nodes.front() != start;
}

/// As TransformerEngine does it: along the rule set, then along the graph.
void fuseInOrder(const Graph& graph, const Legality& legality, const Rules& rules, EntryList& entries,
                 std::vector<Attempt>& attempts) {
  const Claims none(graph.nodes().size(), nullptr);
  for (const auto& rule : rules) {
    if (rule->origin != RuleOrigin::Te) continue;
    for (NodeId start = 0; start < static_cast<NodeId>(graph.nodes().size()); ++start) {
      if (!rule->chain.front().matches(graph.node(start)) || isInside(entries, *rule, start)) continue;
      Attempt attempt = legality.tryFrom(start, *rule, entries, none);
      if (attempt.outcome == Outcome::Fused)
        entries.add({.rule = rule.get(), .nodes = attempt.nodes, .caveat = attempt.caveat});
      attempts.push_back(std::move(attempt));
    }
  }
}

/// Most of our own joint fusions are about what forward keeps; those of TransformerEngine serve inference as well.
Rules jointRules(const RuleCatalog& catalog, bool isTraining) {
  Rules rules = catalog.rules(FusionPass::Joint);
  if (isTraining) return rules;
  std::erase_if(rules, [](const auto& rule) { return rule->origin != RuleOrigin::Te && !rule->servesInference; });
  return rules;
}

}  // namespace

Result<FusionReport> fuse(const Graph& graph, const FusionOptions& options) {
  const RuleCatalog& rules = options.rules ? *options.rules : builtinRules();
  const RuleSwitches& switches = options.switches;
  if (Result<void> off = checkSwitches(rules, switches.without, "switches off"); !off) return off.error();
  if (Result<void> on = checkSwitches(rules, switches.with, "asks for"); !on) return on.error();

  FusionReport report = unfused(graph);
  report.book = options.book;
  report.device = options.gains.device;
  const SavedSet saved = savedTensors(graph, report.backward);
  const bool isTraining = graph.pass() == ExecutionMode::Training;
  const std::vector<InPlaceHazard> hazards =
      options.book == RuleBook::Te ? inPlaceHazards(graph) : std::vector<InPlaceHazard>();
  const Legality legality(graph, options, saved, hazards);
  const auto apply = [&](EntryList entries, const Rules& some) {
    if (options.book == RuleBook::Te)
      fuseInOrder(graph, legality, some, entries, report.attempts);
    else
      fuseBest(graph, options, legality, some, entries, report.attempts);
    return entries;
  };
  const auto run = [&](FusionPass pass, EntryList entries) { return apply(std::move(entries), rules.rules(pass)); };

  const EntryList joint = apply(EntryList(graph), jointRules(rules, isTraining));
  report.forward = toList(graph, run(FusionPass::Forward, joint), false);
  if (isTraining) report.backward = toList(graph, run(FusionPass::Backward, joint), true);
  addFusedOperands(graph, options, rules, report);
  for (auto* list : {&report.forward, &report.backward})
    for (FusedOperation& entry : *list) entry.ranks = options.target.ranks;
  sortAttempts(report, rules);
  explainLost(graph, options, report);
  return report;
}

namespace {

/// Position of every op's entry in the list; -1 where it is missing. An op that stands twice is reported.
Verdict placesOf(const Graph& graph, const std::vector<FusedOperation>& list, std::vector<int>& places) {
  places.assign(graph.nodes().size(), -1);
  for (std::size_t i = 0; i < list.size(); ++i) {
    for (const NodeId id : list[i].nodes) {
      int& place = places[static_cast<std::size_t>(id)];
      if (place >= 0) return Verdict::no(fmt::format("{} is in two entries.", nameOf(graph, id)));
      place = static_cast<int>(i);
    }
  }
  return Verdict::yes();
}

Verdict verifyOrder(const Graph& graph, const std::vector<int>& places) {
  for (const Value& value : graph.values()) {
    if (value.producer < 0) continue;
    const int from = places[static_cast<std::size_t>(value.producer)];
    for (const Use& use : value.uses) {
      const int to = places[static_cast<std::size_t>(use.node)];
      if (from >= 0 && to >= 0 && from > to)
        return Verdict::no(fmt::format("{} runs before {}, whose result it consumes.", nameOf(graph, use.node),
                                       nameOf(graph, value.producer)));
    }
  }
  return Verdict::yes();
}

Verdict verifyList(const Graph& graph, const std::vector<FusedOperation>& list, Phase phase) {
  std::vector<int> places;
  if (Verdict once = placesOf(graph, list, places); !once) return once;
  for (NodeId id = 0; id < static_cast<NodeId>(places.size()); ++id) {
    const bool isWanted = phase == Phase::Forward || graph.node(id).takesPartInBackward();
    if (isWanted && places[static_cast<std::size_t>(id)] < 0)
      return Verdict::no(fmt::format("{} is missing from the {} list.", nameOf(graph, id), phaseName(phase)));
  }
  return verifyOrder(graph, places);
}

}  // namespace

Verdict verifyExpansion(const Graph& graph, const FusionReport& report) {
  if (Verdict forward = verifyList(graph, report.forward, Phase::Forward); !forward) return forward;
  return verifyList(graph, report.backward, Phase::Backward);
}

}  // namespace fuseline
