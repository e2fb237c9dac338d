// Makes plans: one step an entry, a gradient sum where a tensor branches, views without memory, an arena by lifetime.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/collective_overlap.h"
#include "core/fusion/operation_cost.h"
#include "core/plan/collectives/chunked_collectives.h"
#include "core/plan/collectives/collective_steps.h"
#include "core/plan/collectives/overlapped_collectives.h"
#include "core/plan/column_views.h"
#include "core/plan/gradient_sums.h"
#include "core/plan/offload_steps.h"
#include "core/plan/optimizer/optimizer_step.h"
#include "core/plan/plan.h"
#include "core/plan/plan_tensors.h"
#include "core/plan/quantize_steps.h"
#include "core/plan/scale_updates.h"
#include "core/plan/storage_layout.h"
#include "core/support/to_index.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

std::string joinedIds(const Graph& graph, const std::vector<NodeId>& nodes) {
  std::vector<std::string> ids;
  for (const NodeId id : nodes) ids.push_back(graph.node(id).id);
  return fmt::format("{}", fmt::join(ids, ", "));
}

/// Which of the three a gradient is made of.
int readerOf(const Graph& graph, const Step& step, const OperandKey& result) {
  if (result.kind == OperandKind::GradInput) return result.slot == 0 ? 0 : 2;
  return result.slot < numWeights(graph.node(step.nodes.front())) ? 1 : 2;
}

/// A share of an op reads only what its own gradients are made of.
void dropUnreadGradients(const Graph& graph, Step& step) {
  bool isRead[3] = {false, false, false};  // rowwise, columnwise, as it is
  for (const StepOperand& result : step.operands)
    if (result.access != OperandAccess::Read) isRead[readerOf(graph, step, result.key)] = true;
  const bool hasCopies = std::ranges::any_of(step.operands, [](const StepOperand& operand) {
    return operand.key.kind == OperandKind::GradOutput && operand.direction;
  });
  std::erase_if(step.operands, [&](const StepOperand& operand) {
    const int reader = operand.direction ? static_cast<int>(*operand.direction) : 2;
    return hasCopies && operand.key.kind == OperandKind::GradOutput && !isRead[reader];
  });
}

class Planner {
 public:
  Planner(const Graph& graph, const FusionReport& report, const PlanOptions& options, const std::stop_token& stop)
      : m_graph(graph),
        m_report(report),
        m_options(options),
        m_stop(stop),
        m_tensors(graph),
        m_regathers(graph, m_tensors),
        m_saved(m_regathers.withoutGathered(savedTensors(graph, report.backward))),
        m_scaleUpdates(graph, m_tensors),
        m_gradients(graph, m_tensors),
        m_quantize(graph, report, m_tensors, m_steps) {}

  /// nullopt: it was stopped.
  std::optional<Plan> make() {
    for (const FusedOperation& entry : m_report.forward) {
      if (m_stop.stop_requested()) return std::nullopt;
      addStep(entry, Phase::Forward, forwardOperands(m_graph, entry, m_saved));
    }
    nameOutputs();
    if (m_graph.pass() == ExecutionMode::Training) addBackward();
    if (m_stop.stop_requested()) return std::nullopt;
    m_quantize.dropUnreadSources(m_options);
    m_quantize.dropStoredWeights(m_options);
    auto [tensors, viewOf] = std::move(m_tensors).take();
    Plan plan{.steps = std::move(m_steps), .tensors = std::move(tensors)};
    addOffloadSteps(m_graph, plan, viewOf);
    if (!m_options.keepIntermediates) showColumns(m_graph, plan, viewOf, m_options.joinsInPlace);
    if (isChunked()) chunkCollectives(m_graph, plan, viewOf, m_options.chunks);
    if (m_options.overlapsCollectives) overlapCollectives(plan, viewOf);
    layOutStorages(plan, viewOf, m_options);
    return plan;
  }

 private:
  /// Every tensor has its own memory where intermediates are kept, so that none has the rows of another.
  bool isChunked() const {
    return m_options.overlapsCollectives && m_options.chunks != 1 && !m_options.keepIntermediates;
  }

  void addStep(const FusedOperation& entry, Phase phase, const EntryOperands& operands) {
    if (m_quantize.isGatherOfQuantized(entry, phase) || m_quantize.addHandedOnly(entry, phase)) return;
    Step step = makeStep(entry, phase, operands);
    countWork(step, entry);
    m_steps.push_back(std::move(step));
    if (phase == Phase::Backward)
      for (const NodeId id : entry.nodes) addSteps(m_gradients.addInputGradients(id));
  }

  Step makeStep(const FusedOperation& entry, Phase phase, const EntryOperands& operands) {
    if (phase == Phase::Backward) m_gradients.shareSums(entry);
    Step step{.phase = phase, .nodes = entry.nodes};
    step.name = entry.isFused() ? fmt::format("{}({})", entry.rule->name, joinedIds(m_graph, entry.nodes))
                                : m_graph.node(entry.nodes.front()).id;
    step.rule = entry.isFused() ? entry.rule->name : "";
    step.note = noteOf(entry, phase);
    step.kernel = entry.kernelName(m_graph);
    step.isView = operands.isView();
    for (const OperandUse& use : operands.operands) addOperand(step, entry, use);
    for (const ViewOperand& view : operands.views) addView(entry.nodes, view);
    if (!step.isView && entry.nodes.size() == 1) addCommunication(step);
    return step;
  }

  void addCommunication(Step& step) const {
    step.collective = collectiveWork(m_graph.node(step.nodes.front()), step.phase);
    if (step.collective) step.kernel = collectiveName(step.collective->kind);
  }

  std::string noteOf(const FusedOperation& entry, Phase phase) const {
    if (std::string note = m_quantize.gatherNote(entry, phase); !note.empty()) return note;
    return m_quantize.isQuantizeIn(entry, phase) ? "dequantized: not all consumers can read quantized values"
                                                 : entry.note(m_graph);
  }

  void addOperand(Step& step, const FusedOperation& entry, const OperandUse& use) {
    const std::optional<GemmOperand> operand = gemmOperand(m_graph, entry, use.key);
    if (use.access == OperandAccess::Read && operand && quantizersOf(m_graph.node(operand->node), operand->type).any())
      return m_quantize.addGemmOperands(step, entry.nodes, use.key, *operand);
    const int tensor = m_tensors.of(entry.nodes, use.key);
    const bool isAdded = step.phase == Phase::Backward && m_gradients.isBegun(entry, use.key, tensor);
    step.operands.push_back(
        {.key = use.key, .tensor = tensor, .access = isAdded ? OperandAccess::Accumulate : use.access});
  }

  void addView(const std::vector<NodeId>& nodes, const ViewOperand& view) {
    const int source = m_tensors.of(nodes, view.source);
    m_tensors.makeView(m_tensors.of(nodes, view.view), source);
  }

  void countWork(Step& step, const FusedOperation& entry) const {
    if (step.isView) return;
    for (const NodeId id : entry.nodes) {
      const Node& node = m_graph.node(id);
      if (!node.operation->flops) continue;
      const FlopCount flops = node.operation->flops(node.attributes, m_graph.inputSpecs(id));
      step.flops += step.phase == Phase::Forward ? flops.forward : backwardFlops(m_graph, id);
    }
    m_tensors.countBytes(step);
  }

  void nameOutputs() {
    for (const GraphOutput& output : m_graph.outputs()) {
      const int tensor = m_tensors.find({PlanTensorSource::Value, output.value, 0});
      if (m_tensors[tensor].role != TensorRole::Intermediate) {  // an input, or an output under a second name
        const int alias = m_tensors.add(output.name, m_graph.value(output.value).spec, TensorRole::Output);
        m_tensors.makeView(alias, tensor);
        continue;
      }
      m_tensors[tensor].name = output.name;
      m_tensors[tensor].role = TensorRole::Output;
    }
  }

  void addScaleUpdate() {
    std::optional<Step> step = m_scaleUpdates.stepAtEnd();
    if (!step) return;
    if (std::optional<Step> amaxes = amaxesOfAllRanks(m_graph, m_tensors, *step)) m_steps.push_back(std::move(*amaxes));
    m_steps.push_back(std::move(*step));
  }

  void addBackward() {
    addSteps(m_gradients.addOutputGradients());
    for (auto entry = m_report.backward.rbegin(); entry != m_report.backward.rend(); ++entry) {
      if (m_stop.stop_requested()) return;
      addSteps(m_regathers.before(*entry));
      m_quantize.addRegathers(*entry);
      addBackwardEntry(*entry);
      addWeightGradientsAfter(*entry);
    }
    for (const NodeId id : m_overlapped) addWeightGradient(id);
    for (const NodeId id : m_delayed) addShare(id, m_graph.node(id).delayedNeeds(), true);
    if (std::optional<Step> sum = sumOfPartialGradients(m_graph, m_tensors)) m_steps.push_back(std::move(*sum));
    addScaleUpdate();
    addSteps(optimizerSteps(m_graph, m_tensors));
  }

  void addSteps(std::vector<Step> steps) { std::ranges::move(steps, std::back_inserter(m_steps)); }

  /// Gradients that wait are queued, and computed in the order of the queue when all others are there.
  void addBackwardEntry(const FusedOperation& entry) {
    const NodeId id = entry.nodes.front();
    const Node& node = m_graph.node(id);
    const bool isDelayed = node.delayedNeeds().anyParameter();
    const bool isBeside = m_options.overlapsCollectives && sendsInputGradient(m_graph, id);
    if (!entry.isFused() && !isDelayed && isChunked() && gathersOutputGradient(m_graph, id)) return addBothShares(id);
    if (entry.isFused() || (!isDelayed && !isBeside))
      return addStep(entry, Phase::Backward, backwardOperands(m_graph, entry));
    if (isDelayed)
      m_delayed.push_back(id);
    else
      m_overlapped.push_back(id);
    GradientNeeds prompt = node.promptNeeds();
    if (!isDelayed) prompt.parameters.assign(prompt.parameters.size(), false);
    if (prompt.anyInput() || prompt.anyParameter()) addShare(id, std::move(prompt), false);
    addSteps(m_gradients.addInputGradients(id));
  }

  /// The output gradient is gathered beside the first.
  void addBothShares(NodeId id) {
    const GradientNeeds& needs = m_graph.node(id).needs;
    addShare(id, {.inputs = needs.inputs, .parameters = std::vector<bool>(needs.parameters.size())}, false);
    addWeightGradient(id);
    addSteps(m_gradients.addInputGradients(id));
  }

  /// Weight gradients of layers whose input gradients this step sends.
  void addWeightGradientsAfter(const FusedOperation& entry) {
    const auto isSent = [&](NodeId id) {
      return std::ranges::count(entry.nodes, m_graph.value(m_graph.node(id).inputs.front()).producer) > 0;
    };
    for (const NodeId id : m_overlapped)
      if (isSent(id)) addWeightGradient(id);
    std::erase_if(m_overlapped, isSent);
  }

  void addWeightGradient(NodeId id) {
    const GradientNeeds& needs = m_graph.node(id).needs;
    addShare(id, {.inputs = std::vector<bool>(needs.inputs.size()), .parameters = needs.parameters}, true);
  }

  void addShare(NodeId id, GradientNeeds needs, bool isWeightGradient) {
    const Node& node = m_graph.node(id);
    BackwardShare share = shareOf(m_graph, id, std::move(needs));
    Step step = makeStep({.nodes = {id}}, Phase::Backward, backwardOperands(m_graph, id, share));
    if (isWeightGradient) step.name += " (wgrad)";
    dropUnreadGradients(m_graph, step);
    step.context = std::move(share.context);
    const FlopCount flops = node.operation->flops(node.attributes, m_graph.inputSpecs(id));
    step.flops = isWeightGradient ? flops.wgrad : backwardFlops(m_graph, id) - flops.wgrad;
    m_tensors.countBytes(step);
    m_steps.push_back(std::move(step));
  }

  const Graph& m_graph;
  const FusionReport& m_report;
  const PlanOptions& m_options;
  const std::stop_token& m_stop;
  PlanTensors m_tensors;
  Regathers m_regathers;
  SavedSet m_saved;
  std::vector<Step> m_steps;
  ScaleUpdates m_scaleUpdates;
  GradientSums m_gradients;
  QuantizeSteps m_quantize;
  std::vector<NodeId> m_delayed;     // ops whose weight gradients wait, in the order of backward
  std::vector<NodeId> m_overlapped;  // ops whose weight gradients are computed beside a collective
};

}  // namespace

Plan makePlan(const Graph& graph, const FusionReport& report, const PlanOptions& options) {
  return *makePlan(graph, report, options, {});
}

std::optional<Plan> makePlan(const Graph& graph, const FusionReport& report, const PlanOptions& options,
                             const std::stop_token& stop) {
  return Planner(graph, report, options, stop).make();
}

}  // namespace fuseline
