// Makes steps that communicate.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/collectives/collective_steps.h"

#include "core/support/to_index.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

bool communicates(const Node& node) { return node.operation->communication.has_value(); }

Step communication(std::string name, Phase phase, CollectiveWork work) {
  Step step{.name = std::move(name), .kernel = std::string(collectiveName(work.kind)), .phase = phase};
  step.collective = work;
  return step;
}

}  // namespace

bool isOfSeveralRanks(const Graph& graph) { return std::ranges::any_of(graph.nodes(), communicates); }

std::optional<CollectiveWork> collectiveWork(const Node& node, Phase phase) {
  const auto& passes = node.operation->communication;
  if (!passes) return std::nullopt;
  const std::optional<CollectiveKind>& kind = phase == Phase::Forward ? passes->forward : passes->backward;
  return kind ? std::optional(CollectiveWork{.kind = *kind}) : std::nullopt;
}

bool Regathers::isRegathered(ValueId id) const {
  const Value& value = m_graph.value(id);
  if (value.producer < 0) return false;
  const auto& passes = m_graph.node(value.producer).operation->communication;
  if (!passes || !passes->gathersAgain) return false;
  return !value.isOutput && std::ranges::none_of(value.uses, [&](const Use& use) {
    return m_graph.node(use.node).quantizers.input.any();
  });
}

SavedSet Regathers::withoutGathered(const SavedSet& saved) const {
  SavedSet kept{.residuals = saved.residuals};
  for (const ValueId id : saved.values)
    kept.values.insert(isRegathered(id) ? m_graph.node(m_graph.value(id).producer).inputs.front() : id);
  return kept;
}

std::vector<Step> Regathers::before(const FusedOperation& entry) {
  std::vector<Step> steps;
  for (const MemberTensor& read : savedReads(m_graph, entry)) {
    if (read.tensor.kind != OperandKind::Input) continue;
    const Node& reader = m_graph.node(entry.nodes[toIndex(read.member)]);
    const ValueId value = reader.inputs[toIndex(read.tensor.slot)];
    if (isRegathered(value)) steps.push_back(gather(value));
  }
  return steps;
}

Step Regathers::gather(ValueId value) {
  const NodeId id = m_graph.value(value).producer;
  const Node& node = m_graph.node(id);
  Step step = communication(node.id, Phase::Backward, {.kind = CollectiveKind::AllGather});
  step.nodes = {id};
  const std::string name = fmt::format("{}:{}@backward", node.id, node.operation->outputs.front().name);
  const TensorKey input{PlanTensorSource::Value, node.inputs.front(), 0};
  step.operands = {{.key = {0, OperandKind::Input, 0}, .tensor = m_tensors.find(input)},
                   {.key = {0, OperandKind::Output, 0},
                    .tensor = m_tensors.add({PlanTensorSource::Value, value, 0}, name, m_graph.value(value).spec,
                                            TensorRole::Reloaded),
                    .access = OperandAccess::Write}};
  m_tensors.countBytes(step);
  return step;
}

std::optional<Step> sumOfPartialGradients(const Graph& graph, PlanTensors& tensors) {
  Step step = communication("replicated_gradients", Phase::Backward, {.kind = CollectiveKind::AllReduce});
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    if (!node.hasPartialGradients || !node.needs.anyParameter()) continue;
    const auto member = static_cast<int>(step.nodes.size());
    step.nodes.push_back(id);
    for (int slot = 0; slot < static_cast<int>(node.parameters.size()); ++slot)
      if (node.needs.parameters[toIndex(slot)])
        step.operands.push_back({.key = {member, OperandKind::GradParameter, slot},
                                 .tensor = tensors.find({PlanTensorSource::ParameterGradient, id, slot}),
                                 .access = OperandAccess::Accumulate});
  }
  if (step.operands.empty()) return std::nullopt;
  tensors.countBytes(step);
  return step;
}

std::optional<Step> amaxesOfAllRanks(const Graph& graph, const PlanTensors& tensors, const Step& update) {
  if (!isOfSeveralRanks(graph) || !graph.delayedScaling()->reducesAmax) return std::nullopt;
  Step step = communication(update.name + ".amaxes", update.phase,
                            {.kind = CollectiveKind::AllReduce, .reduction = Reduction::Max, .numElements = 1});
  for (const StepOperand& operand : update.operands)
    if (operand.key.kind == OperandKind::Residual) step.operands.push_back(operand);
  tensors.countBytes(step);
  return step;
}

Step sumOfShards(std::string name, Phase phase, int tensor, const PlanTensors& tensors) {
  Step step = communication(std::move(name), phase, {.kind = CollectiveKind::AllReduce, .numElements = 1});
  step.operands.push_back({.key = {0, OperandKind::Output, 0}, .tensor = tensor, .access = OperandAccess::Accumulate});
  tensors.countBytes(step);
  return step;
}

}  // namespace fuseline
