// Filters and orders fusion attempts.
// SPDX-License-Identifier: Apache-2.0
#include "ui/models/attempt_list.h"

#include "ui/theme/format.h"

#include <algorithm>
#include <tuple>

namespace fuseline::ui {

namespace {

bool touches(const Graph& graph, const Attempt& attempt, const QSet<QString>& selection) {
  if (selection.isEmpty()) return true;
  return std::ranges::any_of(attempt.nodes, [&](NodeId id) { return selection.contains(toQt(graph.node(id).owner)); });
}

bool isDistant(const Attempt& attempt) { return attempt.outcome == Outcome::BrokenChain && attempt.stepsMatched <= 1; }

auto rank(const Attempt* attempt) {
  const Saving saving = attempt->saving.value_or(Saving{});
  const bool isMiss = attempt->outcome != Outcome::Fused;
  return std::tuple(isMiss, -saving.bytes, -saving.launches, -static_cast<long>(attempt->stepsMatched));
}

}  // namespace

AttemptList attemptsFor(const Analysis& analysis, const QSet<QString>& selection) {
  AttemptList list;
  for (const Attempt& attempt : analysis.report.attempts) {
    if (touches(analysis.graph(), attempt, selection)) {
      (isDistant(attempt) ? list.distant : list.shown).push_back(&attempt);
    }
  }
  std::ranges::stable_sort(list.shown, {}, rank);
  return list;
}

}  // namespace fuseline::ui
