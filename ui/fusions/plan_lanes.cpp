// From an analysis to the boxes of the plan panel.
// SPDX-License-Identifier: Apache-2.0
#include "ui/fusions/plan_lanes.h"

#include "core/collective/communicator.h"
#include "core/ops/offload.h"
#include "ui/fusions/gain_text.h"
#include "ui/theme/format.h"
#include "ui/widgets/tip_lines.h"
#include "ui/widgets/translated.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

namespace fuseline::ui {

namespace {

QString membersOf(const Graph& graph, const std::vector<NodeId>& nodes, const QString& between = QStringLiteral(", ")) {
  QStringList members;
  for (const NodeId id : nodes) members.append(toQt(graph.node(id).id));
  return members.join(between);
}

/// "all-gather" for the communication of a pass: its op may have the name of a tensor's placement.
QString nameOf(const Graph& graph, const FusedOperation& entry, Phase phase) {
  const auto& passes = graph.node(entry.nodes.front()).operation->communication;
  if (entry.isFused() || !passes) return toQt(entry.name(graph));
  const auto kind = phase == Phase::Forward ? passes->forward : passes->backward;
  return kind ? toQt(collectiveName(*kind)) : translated("no communication");
}

QString tipOf(const Analysis& analysis, const FusedOperation& entry, Phase phase) {
  const Graph& graph = analysis.graph();
  QString tip = QStringLiteral("<b>%1</b> (%2)<br>%3")
                    .arg(nameOf(graph, entry, phase).toHtmlEscaped(), toQt(phaseName(phase)),
                         membersOf(graph, entry.nodes, QStringLiteral(" → ")).toHtmlEscaped());
  if (entry.rule) tip += QStringLiteral("<br>%1").arg(toQt(entry.rule->summary).toHtmlEscaped());
  for (const QString& text : gainTexts(analysis.report, entry)) tip += QStringLiteral("<br>") + text.toHtmlEscaped();
  return tip;
}

/// Quantization, or amax, in the steps that produce a tensor, by phase and last op.
using Copies = std::map<std::pair<Phase, NodeId>, const QuantizeWork*>;

Copies copiesAt(const Analysis& analysis, FusionStage stage) {
  Copies copies;
  if (!analysis.isRunnable() || stage != FusionStage::FusedOperands) return copies;
  for (const Step& step : analysis.fusedPlan->steps)
    if (!step.copies.empty() && !step.nodes.empty())
      copies.emplace(std::pair(step.phase, step.nodes.back()), &step.copies.front());
  return copies;
}

QString formatOf(const QuantizeWork& work) {
  if (work.isAmaxOnly()) return translated("amax");
  return toQt(formatName((work.quantizers.rowwise ? work.quantizers.rowwise : work.quantizers.columnwise)->format));
}

QString tipOf(const QuantizeWork& work, const Node& reader) {
  const QString text = work.isAmaxOnly() ? translated("Computes the amax that %1 uses to quantize its input.")
                                         : translated("Writes the quantized GEMM input of %1.");
  return QStringLiteral("<br>") + text.arg(toQt(reader.id));
}

/// "Offloaded to host memory: tensors kept by fc1."; empty for others.
QString offloadText(const Graph& graph, const FusedOperation& entry) {
  std::vector<NodeId> offloaded;
  std::ranges::copy_if(entry.nodes, std::back_inserter(offloaded),
                       [&](NodeId id) { return isOffloaded(graph.node(id).attributes); });
  return offloaded.empty()
             ? QString()
             : translated("Offloaded to host memory: tensors kept by %1.").arg(membersOf(graph, offloaded));
}

LaneBox laneBox(const Analysis& analysis, const FusedOperation& entry, Phase phase, const Copies& copies) {
  const Graph& graph = analysis.graph();
  const auto [first, last] = std::ranges::minmax(entry.nodes);
  LaneBox box{.firstColumn = first, .lastColumn = last, .label = nameOf(graph, entry, phase)};
  if (const auto work = copies.find({phase, entry.nodes.back()}); work != copies.end())
    box.label += QStringLiteral(" → ") + formatOf(*work->second);
  box.isFused = entry.isFused();
  if (entry.rule) box.rule = toQt(entry.rule->name);
  box.isJoint = entry.rule && entry.rule->pass == FusionPass::Joint;
  for (const NodeId id : entry.nodes) {
    const QString owner = toQt(graph.node(id).owner);
    if (!box.owners.contains(owner)) box.owners.append(owner);
  }
  return box;
}

std::int64_t stepsOf(const Plan& plan, Phase phase) {
  return std::ranges::count_if(plan.steps, [&](const Step& step) { return step.phase == phase && step.isWork(); });
}

QString stepText(const Analysis& analysis, Phase phase, const QString& pass) {
  const std::int64_t fused = stepsOf(*analysis.fusedPlan, phase);
  const std::int64_t unfused = stepsOf(analysis.unfusedPlan(), phase);
  const QString steps = counted(fused, translated("step"), translated("steps"));
  if (fused == unfused) return translated("%1: %2, the same number as unfused").arg(pass, steps);
  return translated("%1: %3 → %2").arg(pass, steps).arg(unfused);
}

QString peakText(const Analysis& analysis) {
  const QString fused = formatByteCount(analysis.fusedPlan->peakBytes());
  const QString unfused = formatByteCount(analysis.unfusedPlan().peakBytes());
  return fused == unfused ? translated("peak memory %1, the same as unfused").arg(fused)
                          : translated("peak memory %2 → %1").arg(fused, unfused);
}

/// Points to the report itself, which is large, where nothing is taken apart.
class StageReport {
 public:
  StageReport(const FusionReport& report, FusionStage stage)
      : m_earlier(stage == FusionStage::FusedOperands ? std::nullopt : std::optional(reportAfter(report, stage))),
        m_report(m_earlier ? *m_earlier : report) {}
  const FusionReport* operator->() const { return &m_report; }

 private:
  const std::optional<FusionReport> m_earlier;
  const FusionReport& m_report;
};

}  // namespace

PlanLanes planLanes(const Analysis& analysis, FusionStage stage) {
  PlanLanes lanes;
  for (const Node& node : analysis.graph().nodes()) lanes.columns.append(toQt(node.id));
  const Copies copies = copiesAt(analysis, stage);
  const StageReport report(analysis.report, stage);
  const auto boxesOf = [&](const std::vector<FusedOperation>& entries, Phase phase) {
    std::vector<LaneBox> boxes;
    for (const FusedOperation& entry : entries) {
      if (entry.nodes.empty()) continue;
      boxes.push_back(laneBox(analysis, entry, phase, copies));
      boxes.back().entry = static_cast<std::size_t>(&entry - entries.data());
    }
    return boxes;
  };
  lanes.forward = boxesOf(report->forward, Phase::Forward);
  lanes.backward = boxesOf(report->backward, Phase::Backward);
  return lanes;
}

QString laneTip(const Analysis& analysis, FusionStage stage, const LaneBox& box, Phase phase) {
  const Graph& graph = analysis.graph();
  const Copies copies = copiesAt(analysis, stage);
  const StageReport report(analysis.report, stage);
  const FusedOperation& entry = (phase == Phase::Forward ? report->forward : report->backward)[box.entry];
  QString tip = tipOf(analysis, entry, phase);
  if (const auto work = copies.find({phase, entry.nodes.back()}); work != copies.end())
    tip += tipOf(*work->second, graph.node(work->second->reader));
  const QString offloaded = phase == Phase::Backward ? offloadText(graph, entry) : QString();
  if (!offloaded.isEmpty()) tip += QStringLiteral("<br>") + offloaded;
  return cappedTip(tip);
}

QString stageName(FusionStage stage) {
  switch (stage) {
    case FusionStage::Ops: return translated("Basic ops");
    case FusionStage::Joint: return translated("Joint rules");
    case FusionStage::Forward: return translated("Forward rules");
    case FusionStage::Backward: return translated("Backward rules");
    case FusionStage::FusedOperands: return translated("The plan");
  }
  return {};
}

QString stageSummary(const Analysis& analysis, FusionStage stage) {
  if (stage == FusionStage::Ops) return translated("Each op on its own, before any rule is applied.");
  QStringList fused;
  for (const Attempt* attempt : fusedIn(analysis.report, stage))
    fused.append(QStringLiteral("%1 (%2)").arg(toQt(attempt->rule->name), membersOf(analysis.graph(), attempt->nodes)));
  if (fused.isEmpty()) return translated("%1: no fusions.").arg(stageName(stage));
  return QStringLiteral("%1: %2.").arg(stageName(stage), fused.join(QStringLiteral("  ·  ")));
}

QString planSummary(const Analysis& analysis) {
  if (!analysis.isRunnable()) return QString();
  QStringList parts = {stepText(analysis, Phase::Forward, translated("Forward"))};
  if (analysis.graph().pass() == ExecutionMode::Training)
    parts.append(stepText(analysis, Phase::Backward, translated("backward")));
  if (stepsOf(*analysis.fusedPlan, Phase::Optimizer) > 0)
    parts.append(stepText(analysis, Phase::Optimizer, translated("optimizer")));
  parts.append(peakText(analysis));
  if (const std::int64_t bytes = analysis.fusedPlan->hostBytes; bytes > 0)
    parts.append(translated("%1 offloaded to host memory").arg(formatByteCount(bytes)));
  return parts.join(QStringLiteral("  ·  "));
}

}  // namespace fuseline::ui
