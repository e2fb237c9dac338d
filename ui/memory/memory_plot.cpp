// The memory of plans, for the panel Memory.
// SPDX-License-Identifier: Apache-2.0
#include "ui/memory/memory_plot.h"

#include "core/support/text.h"
#include "ui/theme/format.h"
#include "ui/widgets/translated.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace fuseline::ui {

QString bytesText(std::int64_t bytes) { return toQt(formatBytes(bytes)); }

namespace {

const Step& stepAt(const Plan& plan, int index) { return plan.steps[static_cast<std::size_t>(index)]; }

QString nameOf(const QString& step, Phase phase) {
  return phase == Phase::Backward ? translated("%1 (backward)").arg(step) : step;
}

QString nameOf(const Plan& plan, int step) { return nameOf(toQt(stepAt(plan, step).name), stepAt(plan, step).phase); }

QStringList ownersOf(const Graph& graph, const Step& step) {
  QStringList owners;
  for (const NodeId node : step.nodes) owners.append(toQt(graph.node(node).owner));
  for (const QuantizeWork& work : step.copies) owners.append(toQt(graph.node(work.reader).owner));
  owners.removeDuplicates();
  return owners;
}

/// Memory in use by purpose, largest first.
QStringList factsOf(const MemoryColumn& column) {
  std::array<std::size_t, kNumMemoryPurposes> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t i) { return column.bytes[i]; });
  QStringList facts = {translated("%1 in use").arg(bytesText(column.total()))};
  for (const std::size_t i : order)
    if (column.bytes[i] > 0)
      facts.append(
          QStringLiteral("%1 %2").arg(bytesText(column.bytes[i]), toQt(purposeName(static_cast<MemoryPurpose>(i)))));
  return facts;
}

MemoryColumn columnOf(const Graph& graph, const Plan& plan, const StepMemory& memory) {
  const Step& step = stepAt(plan, memory.step);
  std::vector<std::string> ops;
  for (const NodeId node : step.nodes) ops.push_back(graph.node(node).id);
  return {.label = toQt(step.name),
          .owners = ownersOf(graph, step),
          .ops = std::move(ops),
          .kernel = step.kernel,
          .phase = step.phase,
          .bytes = memory.bytes};
}

/// A tensor that a plan keeps, by its name: fusions leave names as they are.
struct Keeping {
  const Plan& plan;
  std::map<std::string, KeptTensor> tensors;
};

Keeping keepingOf(const Plan& plan) {
  Keeping keeping{plan, {}};
  for (KeptTensor& kept : memoryProfile(plan).kept)
    keeping.tensors.emplace(plan.tensors[static_cast<std::size_t>(kept.tensor)].name, std::move(kept));
  return keeping;
}

QString lifetimeOf(const Graph& graph, const Plan& plan, const KeptTensor& kept) {
  QStringList readers;
  for (const NodeId reader : kept.readers) readers.append(toQt(graph.node(reader).id));
  const QString text =
      translated("kept from %1 to %2, consumed by %3")
          .arg(nameOf(plan, kept.firstStep), nameOf(plan, kept.lastStep), readers.join(QStringLiteral(", ")));
  return kept.isOnHost ? translated("%1; in host memory").arg(text) : text;
}

/// Both plans' keeping of one tensor; one of them may be nullptr.
KeptRow rowOf(const Graph& graph, const Keeping& unfused, const KeptTensor* before, const Keeping& fused,
              const KeptTensor* now) {
  const Plan& plan = now ? fused.plan : unfused.plan;
  const KeptTensor& kept = now ? *now : *before;
  const PlanTensor& tensor = plan.tensors[static_cast<std::size_t>(kept.tensor)];
  return {.tensor = toQt(tensor.name),
          .spec = formatSpec(tensor.spec),
          .unfusedBytes = before ? std::optional(before->bytes) : std::nullopt,
          .fusedBytes = now ? std::optional(now->bytes) : std::nullopt,
          .lifetime = lifetimeOf(graph, plan, kept),
          .isOnHost = kept.isOnHost};
}

std::int64_t sumOf(const std::vector<KeptRow>& rows, std::optional<std::int64_t> KeptRow::*bytes) {
  std::int64_t sum = 0;
  for (const KeptRow& row : rows) sum += row.isOnHost ? 0 : (row.*bytes).value_or(0);
  return sum;
}

}  // namespace

QString tipOf(const MemoryColumn& column) {
  return QStringLiteral("<b>%1</b><br>%2")
      .arg(nameOf(column.label, column.phase).toHtmlEscaped(), factsOf(column).join(QStringLiteral("<br>")));
}

QString wordsOf(const MemoryColumn& column) {
  return QStringLiteral("%1: %2").arg(nameOf(column.label, column.phase), factsOf(column).join(QStringLiteral(", ")));
}

MemoryPlot onlyColumns(MemoryPlot plot, const std::function<bool(const MemoryColumn&)>& keeps) {
  std::erase_if(plot.columns, [&](const MemoryColumn& column) { return !keeps(column); });
  const auto peak = std::ranges::max_element(plot.columns, {}, &MemoryColumn::total);
  plot.peak = static_cast<std::size_t>(peak - plot.columns.begin());
  return plot;
}

MemoryPlot memoryPlot(const Analysis& analysis, bool isFused) {
  if (!analysis.isRunnable()) return {};
  const Plan& plan = isFused ? *analysis.fusedPlan : analysis.unfusedPlan();
  const MemoryProfile profile = memoryProfile(plan);
  MemoryPlot plot{.columns = {}, .peak = profile.peak, .allocatedBytes = plan.peakBytes()};
  for (const StepMemory& memory : profile.steps) plot.columns.push_back(columnOf(analysis.graph(), plan, memory));
  return plot;
}

std::int64_t KeptGroup::unfusedBytes() const { return sumOf(rows, &KeptRow::unfusedBytes); }
std::int64_t KeptGroup::fusedBytes() const { return sumOf(rows, &KeptRow::fusedBytes); }

std::vector<KeptGroup> keptByOp(const Analysis& analysis) {
  if (!analysis.isRunnable()) return {};
  const Graph& graph = analysis.graph();
  const Keeping unfused = keepingOf(analysis.unfusedPlan());
  const Keeping fused = keepingOf(*analysis.fusedPlan);
  const auto find = [](const Keeping& keeping, const std::string& name) {
    const auto found = keeping.tensors.find(name);
    return found == keeping.tensors.end() ? nullptr : &found->second;
  };
  std::map<NodeId, KeptGroup> groups;
  const auto add = [&](const KeptTensor& kept, const KeptRow& row) {
    const Node& reader = graph.node(kept.readers.front());
    KeptGroup& group = groups[kept.readers.front()];
    group.op = toQt(reader.id);
    group.owner = toQt(reader.owner);
    group.rows.push_back(row);
  };
  for (const auto& [name, kept] : fused.tensors) add(kept, rowOf(graph, unfused, find(unfused, name), fused, &kept));
  for (const auto& [name, kept] : unfused.tensors)
    if (!find(fused, name)) add(kept, rowOf(graph, unfused, &kept, fused, nullptr));
  std::vector<KeptGroup> inOrder;
  for (auto& [node, group] : groups) inOrder.push_back(std::move(group));
  return inOrder;
}

QString memorySummary(const Analysis& analysis) {
  if (!analysis.isRunnable()) return {};
  const Plan& fused = *analysis.fusedPlan;
  const Plan& unfused = analysis.unfusedPlan();
  const MemoryProfile profile = memoryProfile(fused);
  if (profile.steps.empty()) return {};
  QString text = translated("%1 allocated (unfused %2); peak %3 in use, at %4.")
                     .arg(bytesText(fused.peakBytes()), bytesText(unfused.peakBytes()), bytesText(profile.peakBytes()),
                          nameOf(fused, profile.steps[profile.peak].step));
  if (analysis.graph().pass() == ExecutionMode::Training)
    text += translated(" Kept for backward: %1 (unfused %2).")
                .arg(bytesText(fused.savedForBackwardBytes), bytesText(unfused.savedForBackwardBytes));
  if (fused.hostBytes > 0) text += translated(" In host memory: %1.").arg(bytesText(fused.hostBytes));
  return text;
}

}  // namespace fuseline::ui
