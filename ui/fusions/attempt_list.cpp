// Filters and orders fusion attempts.
// SPDX-License-Identifier: Apache-2.0
#include "ui/fusions/attempt_list.h"

#include "core/fusion/rule_uses.h"
#include "core/graph/instances.h"
#include "ui/theme/format.h"

#include <algorithm>
#include <map>
#include <utility>

namespace fuseline::ui {

namespace {

bool touches(const Graph& graph, const Attempt& attempt, const QSet<QString>& selection) {
  if (selection.isEmpty()) return true;
  return std::ranges::any_of(attempt.nodes, [&](NodeId id) { return selection.contains(toQt(graph.node(id).owner)); });
}

/// Does one of the selected ops stand where the rule wanted another one?
bool breaksAt(const Graph& graph, const Attempt& attempt, const QSet<QString>& selection) {
  if (attempt.outcome != Outcome::BrokenChain || attempt.nodes.empty()) return false;
  const std::vector<ValueId>& outputs = graph.node(attempt.nodes.back()).outputs;
  return std::ranges::any_of(outputs, [&](ValueId output) {
    return std::ranges::any_of(graph.value(output).uses,
                               [&](const Use& use) { return selection.contains(toQt(graph.node(use.node).owner)); });
  });
}

/// Applied fusions come first, then those with the largest measured or predicted gain.
bool standsBefore(const Attempt& a, const Attempt& b, const DeviceModel& device) {
  const auto isMiss = [](const Attempt& attempt) { return attempt.outcome != Outcome::Fused; };
  if (isMiss(a) != isMiss(b)) return isMiss(b);
  if (gainsMore(a, b, device)) return true;
  return !gainsMore(b, a, device) && a.stepsMatched > b.stepsMatched;
}

/// Fusions by pass and op.
using FusedAt = std::map<std::pair<FusionPass, NodeId>, const Attempt*>;
FusedAt fusedAt(const FusionReport& report) {
  FusedAt fused;
  for (const Attempt& attempt : report.attempts)
    if (attempt.outcome == Outcome::Fused)
      for (const NodeId node : attempt.nodes) fused[{attempt.rule->pass, node}] = &attempt;
  return fused;
}

/// Are all of its ops in one fusion of another rule? A chain that breaks may lead beyond them.
bool isSuperseded(const FusedAt& fused, const Attempt& attempt) {
  const bool isMatch = attempt.outcome == Outcome::TakenByAnother || attempt.outcome == Outcome::ConditionFailed ||
                       attempt.outcome == Outcome::NoKernel;
  if (!isMatch || attempt.nodes.empty()) return false;
  const auto fusionOf = [&](NodeId node) {
    const auto found = fused.find({attempt.rule->pass, node});
    return found == fused.end() ? nullptr : found->second;
  };
  const Attempt* const first = fusionOf(attempt.nodes.front());
  return first && std::ranges::all_of(attempt.nodes, [&](NodeId node) { return fusionOf(node) == first; });
}

}  // namespace

AttemptList attemptsFor(const Analysis& analysis, const QSet<QString>& selection) {
  AttemptList list;
  const FusedAt fused = fusedAt(analysis.report);
  for (const Attempt& attempt : analysis.report.attempts) {
    if (touches(analysis.graph(), attempt, selection)) {
      (isDistant(attempt) || isSuperseded(fused, attempt) ? list.distant : list.shown).push_back(&attempt);
    }
  }
  if (list.shown.empty() && list.distant.empty())
    for (const Attempt& attempt : analysis.report.attempts)
      if (breaksAt(analysis.graph(), attempt, selection)) list.shown.push_back(&attempt);
  std::ranges::stable_sort(
      list.shown, [&](const Attempt* a, const Attempt* b) { return standsBefore(*a, *b, analysis.report.device); });
  return list;
}

std::vector<InstanceAttempts> foldedAttempts(const Graph& graph, const std::vector<const Attempt*>& attempts) {
  const InstanceNames names(graph);
  std::vector<std::string> keys;
  for (const Attempt* attempt : attempts) {
    std::string key = attempt->rule->name + '\n' + std::string(outcomeName(attempt->outcome));
    for (const NodeId id : attempt->nodes) key += '\n' + names.shared(graph.node(id).id).text;
    keys.push_back(std::move(key));
  }
  std::vector<InstanceAttempts> folded;
  for (const std::vector<std::size_t>& group : groupsOf(keys)) {
    InstanceAttempts same;
    for (const std::size_t place : group) same.push_back(attempts[place]);
    folded.push_back(std::move(same));
  }
  return folded;
}

QString opsText(const Graph& graph, const InstanceAttempts& attempts) {
  const InstanceNames names(graph);
  QStringList ids;
  for (const NodeId node : attempts.front()->nodes) {
    const Node& op = graph.node(node);
    const QString id = attempts.size() > 1 ? toQt(names.shared(op.id).text).section(u'/', -1) : toQt(op.owner);
    if (!ids.contains(id)) ids.append(id);
  }
  return ids.join(QStringLiteral(", "));
}

}  // namespace fuseline::ui
