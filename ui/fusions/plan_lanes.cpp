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
#include <map>
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

Copies copiesIn(const Analysis& analysis) {
  Copies copies;
  if (!analysis.isRunnable()) return copies;
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

LaneBox laneBox(const Analysis& analysis, const FusedOperation& entry, Phase phase, const Copies& copies) {
  const Graph& graph = analysis.graph();
  const auto [first, last] = std::ranges::minmax(entry.nodes);
  LaneBox box{.firstColumn = first, .lastColumn = last, .label = nameOf(graph, entry, phase)};
  box.tip = tipOf(analysis, entry, phase);
  if (const auto work = copies.find({phase, entry.nodes.back()}); work != copies.end()) {
    box.label += QStringLiteral(" → ") + formatOf(*work->second);
    box.tip += tipOf(*work->second, graph.node(work->second->reader));
  }
  if (std::vector<NodeId> offloaded; phase == Phase::Backward) {
    std::ranges::copy_if(entry.nodes, std::back_inserter(offloaded),
                         [&](NodeId id) { return isOffloaded(graph.node(id).attributes); });
    if (!offloaded.empty())
      box.tip += QStringLiteral("<br>") +
                 translated("Offloaded to host memory: tensors kept by %1.").arg(membersOf(graph, offloaded));
  }
  box.tip = cappedTip(box.tip);
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
  const std::int64_t unfused = stepsOf(*analysis.unfusedPlan, phase);
  const QString steps = counted(fused, translated("step"), translated("steps"));
  if (fused == unfused) return translated("%1: %2, the same number as unfused").arg(pass, steps);
  return translated("%1: %3 → %2").arg(pass, steps).arg(unfused);
}

QString peakText(const Analysis& analysis) {
  const QString fused = formatByteCount(analysis.fusedPlan->peakBytes());
  const QString unfused = formatByteCount(analysis.unfusedPlan->peakBytes());
  return fused == unfused ? translated("peak memory %1, the same as unfused").arg(fused)
                          : translated("peak memory %2 → %1").arg(fused, unfused);
}

}  // namespace

PlanLanes planLanes(const Analysis& analysis, FusionStage stage) {
  PlanLanes lanes;
  for (const Node& node : analysis.graph().nodes()) lanes.columns.append(toQt(node.id));
  const Copies copies = stage == FusionStage::FusedOperands ? copiesIn(analysis) : Copies();
  const FusionReport report = reportAfter(analysis.report, stage);
  for (const FusedOperation& entry : report.forward)
    if (!entry.nodes.empty()) lanes.forward.push_back(laneBox(analysis, entry, Phase::Forward, copies));
  for (const FusedOperation& entry : report.backward)
    if (!entry.nodes.empty()) lanes.backward.push_back(laneBox(analysis, entry, Phase::Backward, copies));
  return lanes;
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
