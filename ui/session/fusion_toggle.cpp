// Chooses what is switched off, or else on again.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/fusion_toggle.h"

#include "ui/theme/format.h"
#include "ui/widgets/translated.h"

#include <QStringList>

#include <algorithm>
#include <vector>

namespace fuseline::ui {

namespace {

bool touches(const Graph& graph, const Attempt& attempt, const QSet<QString>& selection) {
  return std::ranges::any_of(attempt.nodes, [&](NodeId id) { return selection.contains(toQt(graph.node(id).owner)); });
}

QString namesOf(const std::vector<const Attempt*>& attempts) {
  QStringList names;
  for (const Attempt* attempt : attempts) names.append(toQt(attempt->rule->name));
  names.removeDuplicates();
  return names.join(QStringLiteral(", "));
}

}  // namespace

std::optional<FusionToggle> fusionToggle(const PipelineDocument& document, const Analysis& analysis,
                                         const QSet<QString>& selection, const QString& rule) {
  const Graph& graph = analysis.graph();
  std::vector<const Attempt*> applied;
  std::vector<const Attempt*> off;
  for (const Attempt& attempt : analysis.report.attempts) {
    const bool isMeant = rule.isEmpty() || toQt(attempt.rule->name) == rule;
    if (!isMeant || !touches(graph, attempt, selection)) continue;
    if (attempt.outcome == Outcome::Fused) applied.push_back(&attempt);
    if (isOffHere(document, graph, attempt)) off.push_back(&attempt);
  }
  if (!applied.empty())
    return FusionToggle{switchOffHere(document, graph, applied),
                        translated("Switched off here: %1. T switches it on again.").arg(namesOf(applied))};
  if (off.empty()) return std::nullopt;
  return FusionToggle{switchOnHere(document, graph, off), translated("Switched on here: %1.").arg(namesOf(off))};
}

}  // namespace fuseline::ui
