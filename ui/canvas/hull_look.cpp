// Says in words what a fusion is, what it gains, and what it measured.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/hull_look.h"

#include "core/plan/fusion_edits.h"
#include "ui/fusions/gain_text.h"
#include "ui/theme/format.h"
#include "ui/widgets/translated.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace fuseline::ui {

namespace {

QString ownerOf(const Node& node, const CanvasScope& scope) {
  return toQt(scope.isInside() ? scope.idAt(node.path) : node.owner);
}

/// Without those that are elsewhere.
QStringList ownersOf(const Graph& graph, const FusedOperation& entry, const CanvasScope& scope) {
  QStringList owners;
  for (const NodeId id : entry.nodes)
    if (const QString owner = ownerOf(graph.node(id), scope); !owner.isEmpty() && !owners.contains(owner))
      owners.append(owner);
  return owners;
}

bool reachesOut(const Graph& graph, const FusedOperation& entry, const CanvasScope& scope) {
  return std::ranges::any_of(entry.nodes, [&](NodeId id) { return ownerOf(graph.node(id), scope).isEmpty(); });
}

/// A quantized output has no outline.
std::optional<HullKind> hullKind(FusionPass pass) {
  switch (pass) {
    case FusionPass::Forward: return HullKind::Forward;
    case FusionPass::Backward: return HullKind::Backward;
    case FusionPass::Joint: return HullKind::Joint;
    default: return std::nullopt;
  }
}

QString passName(HullKind kind) {
  switch (kind) {
    case HullKind::Forward: return translated("forward");
    case HullKind::Backward: return translated("backward");
    case HullKind::Joint: return translated("forward + backward");
  }
  return {};
}

class HullLooks {
 public:
  HullLooks(const Analysis& analysis, const Session& session, const CanvasScope& scope, HullFilter filter,
            bool withSpeedups)
      : m_document(session.pipeline().document()), m_scope(scope), m_analysis(analysis), m_filter(filter) {
    const auto& run = session.results().lastRun();
    if (withSpeedups && !scope.isInside() && run && !run->isStale) m_measured = compareVariants(run->record).rows;
  }

  std::vector<HullLook> all() && {
    const FusionReport& report = m_analysis.report;
    if (m_filter == HullFilter::Forward || m_filter == HullFilter::Both) add(report.forward, HullKind::Forward);
    if (m_filter == HullFilter::Backward || m_filter == HullFilter::Both) add(report.backward, HullKind::Backward);
    addOff();
    std::erase_if(m_looks, [](const HullLook& look) { return look.owners.isEmpty(); });
    return std::move(m_looks);
  }

 private:
  void add(const std::vector<FusedOperation>& entries, HullKind kind) {
    for (const FusedOperation& entry : entries) {
      if (!entry.isFused()) continue;
      const bool isJoint = entry.rule->pass == FusionPass::Joint;
      // A joint fusion stands in both lists and is drawn once.
      if (isJoint && kind == HullKind::Backward && m_filter == HullFilter::Both) continue;
      m_looks.push_back(lookOf(entry, isJoint ? HullKind::Joint : kind));
    }
  }

  /// Where a fusion is switched off at one place, its outline stays to switch it on again.
  void addOff() {
    for (const Attempt& attempt : m_analysis.report.attempts) {
      const std::optional<HullKind> kind = hullKind(attempt.rule->pass);
      if (!kind || !isShown(*kind) || !isOffHere(m_document, m_analysis.graph(), attempt)) continue;
      HullLook look = lookOf({.rule = attempt.rule, .nodes = attempt.nodes}, *kind);
      look.isOff = true;
      look.label = translated("disabled · %1").arg(look.rule);
      look.farLabel = look.label;
      look.tip += QStringLiteral("<br>") + toQt(attempt.explanation).toHtmlEscaped();
      m_looks.push_back(std::move(look));
    }
  }

  bool isShown(HullKind kind) const {
    const bool isAny = m_filter == HullFilter::Both || (kind == HullKind::Joint && m_filter != HullFilter::None);
    return isAny || m_filter == (kind == HullKind::Forward ? HullFilter::Forward : HullFilter::Backward);
  }

  HullLook lookOf(const FusedOperation& entry, HullKind kind) const {
    HullLook look{.kind = kind, .rule = toQt(entry.rule->name)};
    look.label = QStringLiteral("%1 · %2").arg(passName(kind), look.rule);
    look.tip = QStringLiteral("<b>%1</b><br>%2").arg(look.rule, toQt(entry.rule->summary).toHtmlEscaped());
    for (const QString& text : gainTexts(m_analysis.report, entry))
      look.tip += QStringLiteral("<br>") + text.toHtmlEscaped();
    look.owners = ownersOf(m_analysis.graph(), entry, m_scope);
    if (reachesOut(m_analysis.graph(), entry, m_scope))
      look.tip += QStringLiteral("<br>") + translated("This fusion also includes ops outside of the block.");
    look.farLabel = look.rule;
    addMeasured(look);
    return look;
  }

  /// "1.14 ms · 1.43×": what the last run measured for this fusion, "~" before it within the noise. Joint: forward,
  /// backward.
  void addMeasured(HullLook& look) const {
    QStringList times;
    QStringList speedups;
    for (const ComparisonRow& row : m_measured) {
      QStringList owners;
      for (const std::string& owner : row.owners) owners.append(toQt(owner));
      const bool isPass = look.kind == HullKind::Joint || (row.phase == "forward") == (look.kind == HullKind::Forward);
      const bool isMeasured = row.unfused.count > 0 && row.fused.count > 0;
      if (row.isFused && isPass && isMeasured && owners == look.owners) {
        times.append(formatDurationNs(row.fused.median));
        speedups.append(formatSpeedup(row.speedup));
      }
    }
    if (speedups.isEmpty()) return;
    const QString comma = QStringLiteral(", ");
    look.label += QStringLiteral(" · %1 · %2").arg(times.join(comma), speedups.join(comma));
    look.farLabel = QStringLiteral("%1 · %2").arg(speedups.join(comma), look.rule);
  }

  const PipelineDocument& m_document;
  const CanvasScope& m_scope;
  const Analysis& m_analysis;
  const HullFilter m_filter;
  std::vector<ComparisonRow> m_measured;  // of the last run, while it is about this pipeline
  std::vector<HullLook> m_looks;
};

}  // namespace

HullSource hullSource(const Session& session, const CanvasScope& scope, HullFilter filter, bool withSpeedups) {
  const auto& run = session.results().lastRun();
  return {.analysis = session.plan().analysis(),
          .fusion = session.pipeline().document().fusion(),
          .isMeasured = run && !run->isStale,
          .scope = scope.path(),
          .filter = filter,
          .hasSpeedups = withSpeedups};
}

std::vector<HullLook> hullLooks(const Session& session, const CanvasScope& scope, HullFilter filter,
                                bool withSpeedups) {
  return hullLooksOf(*session.plan().analysis(), session, scope, filter, withSpeedups);
}

std::vector<HullLook> hullLooksOf(const Analysis& analysis, const Session& session, const CanvasScope& scope,
                                  HullFilter filter, bool withSpeedups) {
  return HullLooks(analysis, session, scope, filter, withSpeedups).all();
}

}  // namespace fuseline::ui
