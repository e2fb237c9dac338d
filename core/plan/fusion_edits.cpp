// Rewrites the lists "with" and "without" of the document's fusion section.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/fusion_edits.h"

#include <algorithm>
#include <utility>

namespace fuseline {

namespace {

std::vector<Json> switchesOf(const Json& fusion, const char* key) {
  const bool isList = fusion.is_object() && fusion.contains(key) && fusion[key].is_array();
  return isList ? fusion[key].get<std::vector<Json>>() : std::vector<Json>{};
}

/// An empty list is left out.
void setSwitches(Json& fusion, const char* key, std::vector<Json> entries) {
  fusion.erase(key);
  if (!entries.empty()) fusion[key] = std::move(entries);
}

/// fusion[key] with the entry in it or not.
void setSwitch(Json& fusion, const char* key, const Json& entry, bool isNamed) {
  std::vector<Json> entries = switchesOf(fusion, key);
  std::erase(entries, entry);
  if (isNamed) entries.push_back(entry);
  setSwitches(fusion, key, std::move(entries));
}

Json fusionOf(const PipelineDocument& document) {
  return document.fusion().is_object() ? document.fusion() : Json{{"rules", "all"}};
}

bool sharesOps(const Attempt& a, const Attempt& b) {
  return std::ranges::any_of(a.nodes, [&](NodeId id) { return std::ranges::find(b.nodes, id) != b.nodes.end(); });
}

/// The document's fusion section, as places are switched in it one after the other.
class PlaceSwitches {
 public:
  PlaceSwitches(const PipelineDocument& document, const Graph& graph) : m_graph(graph), m_fusion(fusionOf(document)) {}

  void leaveOut(const Attempt& attempt) {
    forget("with", attempt);
    const bool isStillWanted =
        attempt.rule->price.empty() || !attempt.rule->askedBy.empty() || isNamed("with", attempt);
    if (isStillWanted && !isNamed("without", attempt)) add("without", attempt);
  }

  void allow(const Attempt& attempt) {
    forget("without", attempt);
    if (!attempt.rule->price.empty()) ask(attempt);
  }

  void ask(const Attempt& attempt) {
    forget("without", attempt);
    if (!isNamed("with", attempt)) add("with", attempt);
  }

  /// Switches off the fusions that have taken its ops, or stops requesting them.
  void askInPlaceOfOthers(const Attempt& attempt, const FusionReport& report) {
    for (const Attempt& other : report.attempts) {
      if (other.outcome != Outcome::Fused || !sharesOps(other, attempt)) continue;
      // Joint fusions are chosen before all others, which cannot take their ops even if requested.
      const bool comesFirst = other.rule->pass == FusionPass::Joint && attempt.rule->pass != FusionPass::Joint;
      if (comesFirst) leaveOut(other);
      if (other.rule->pass == attempt.rule->pass) forget("with", other);
    }
    ask(attempt);
  }

  Edit finish(std::string label) && {
    return EditGroup{.label = std::move(label), .edits = {SetFusion{.fusion = std::move(m_fusion)}}};
  }

  /// By an entry for its rule, everywhere or here.
  bool isNamed(const char* key, const Attempt& attempt) const {
    const std::vector<Json> entries = switchesOf(m_fusion, key);
    return std::ranges::any_of(entries, [&](const Json& entry) { return names(entry, attempt); });
  }

  /// By an entry for its rule everywhere.
  bool isNamedEverywhere(const char* key, const Attempt& attempt) const {
    return std::ranges::count(switchesOf(m_fusion, key), Json(attempt.rule->name)) > 0;
  }

 private:
  bool names(const Json& entry, const Attempt& attempt) const {
    return entry.is_string() && !switchFor(m_graph, *attempt.rule, attempt.nodes, {entry.get<std::string>()}).empty();
  }

  /// Entries for the whole rule stay.
  void forget(const char* key, const Attempt& attempt) {
    std::vector<Json> entries = switchesOf(m_fusion, key);
    std::erase_if(entries, [&](const Json& entry) { return entry != attempt.rule->name && names(entry, attempt); });
    setSwitches(m_fusion, key, std::move(entries));
  }

  void add(const char* key, const Attempt& attempt) { setSwitch(m_fusion, key, placeEntry(m_graph, attempt), true); }

  const Graph& m_graph;
  Json m_fusion;
};

/// "ForwardAddNorm at add", "3 fusions".
std::string nameOf(const Graph& graph, const std::vector<const Attempt*>& attempts) {
  if (attempts.size() != 1) return std::to_string(attempts.size()) + " fusions";
  return attempts.front()->rule->name + " at " + graph.node(attempts.front()->nodes.front()).id;
}

bool isFusedOperand(FusionPass pass) {
  return pass == FusionPass::ForwardQuantization || pass == FusionPass::BackwardQuantization;
}

/// TransformerEngine's order accepts no requests, and a step that produces a tensor quantizes only one result.
bool canBeAskedFor(const FusionReport& report, const Attempt& attempt) {
  const bool isTaken = attempt.outcome == Outcome::TakenByAnother && report.book == RuleBook::All;
  const bool isWaiting = attempt.outcome == Outcome::OnRequest || attempt.outcome == Outcome::MeasuredSlower;
  return (isTaken || isWaiting) && !isFusedOperand(attempt.rule->pass);
}

}  // namespace

Edit removeRuleSwitch(const PipelineDocument& document, const std::string& key, const Json& entry) {
  Json fusion = document.fusion();
  setSwitch(fusion, key.c_str(), entry, false);
  return EditGroup{.label = "Remove a rule switch", .edits = {SetFusion{.fusion = std::move(fusion)}}};
}

Edit setRuleEnabled(const PipelineDocument& document, const FusionRule& rule, bool isEnabled) {
  Json fusion = fusionOf(document);
  setSwitch(fusion, "without", rule.name, !isEnabled && rule.price.empty());
  setSwitch(fusion, "with", rule.name, isEnabled && !rule.price.empty());
  return EditGroup{.label = (isEnabled ? "Switch on " : "Switch off ") + rule.name,
                   .edits = {SetFusion{.fusion = std::move(fusion)}}};
}

bool isRuleEnabled(const PipelineDocument& document, const FusionRule& rule) {
  const auto isNamed = [&](const char* key) {
    return std::ranges::count(switchesOf(document.fusion(), key), Json(rule.name)) > 0;
  };
  return !isNamed("without") && (rule.price.empty() || isNamed("with"));
}

Edit switchOffHere(const PipelineDocument& document, const Graph& graph, const std::vector<const Attempt*>& attempts) {
  PlaceSwitches switches(document, graph);
  for (const Attempt* attempt : attempts) switches.leaveOut(*attempt);
  return std::move(switches).finish("Switch off " + nameOf(graph, attempts));
}

Edit switchOnHere(const PipelineDocument& document, const Graph& graph, const std::vector<const Attempt*>& attempts) {
  PlaceSwitches switches(document, graph);
  for (const Attempt* attempt : attempts) switches.allow(*attempt);
  return std::move(switches).finish("Switch on " + nameOf(graph, attempts));
}

bool isOffHere(const PipelineDocument& document, const Graph& graph, const Attempt& attempt) {
  const PlaceSwitches switches(document, graph);
  return attempt.outcome == Outcome::SwitchedOff && switches.isNamed("without", attempt) &&
         !switches.isNamedEverywhere("without", attempt);
}

std::optional<Edit> useHere(const PipelineDocument& document, const Analysis& analysis, const Attempt& attempt) {
  return useHere(document, analysis, std::vector{&attempt});
}

std::optional<Edit> useHere(const PipelineDocument& document, const Analysis& analysis,
                            const std::vector<const Attempt*>& attempts) {
  const auto canBeAsked = [&](const Attempt* attempt) { return canBeAskedFor(analysis.report, *attempt); };
  if (!std::ranges::all_of(attempts, canBeAsked)) return std::nullopt;
  PlaceSwitches switches(document, analysis.graph());
  for (const Attempt* attempt : attempts) switches.askInPlaceOfOthers(*attempt, analysis.report);
  return std::move(switches).finish("Use " + nameOf(analysis.graph(), attempts));
}

}  // namespace fuseline
