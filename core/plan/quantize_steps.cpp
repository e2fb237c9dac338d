// Quantizes each tensor once, before the first GEMM that reads it.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/quantize_steps.h"

#include <algorithm>
#include <utility>

namespace fuseline {

namespace {

/// Biases and their scales have gradients that no GEMM makes.
bool isReadBesideGemms(const Node& node) {
  const auto& [inputs, parameters] = node.needs;
  return std::find(inputs.begin() + 1, inputs.end(), true) != inputs.end() ||
         std::find(parameters.begin() + numWeights(node), parameters.end(), true) != parameters.end();
}

/// The tensor that a Quantize passes on in this pass.
GemmOperand passedOn(const FusedOperation& entry, Phase phase) {
  return {entry.nodes.front(), phase == Phase::Forward ? TensorType::Input : TensorType::GradOutput};
}

}  // namespace

QuantizeSteps::QuantizeSteps(const Graph& graph, const FusionReport& report, PlanTensors& tensors,
                             std::vector<Step>& steps)
    : m_graph(graph),
      m_tensors(tensors),
      m_steps(steps),
      m_handOvers(report.handOvers.begin(), report.handOvers.end()),
      m_needs(graph, report),
      m_copies(graph, m_needs, tensors),
      m_fused(graph, tensors, m_copies, steps) {}

void QuantizeSteps::addGemmOperands(Step& step, const std::vector<NodeId>& nodes, const OperandKey& key,
                                    const GemmOperand& operand) {
  const bool isHanded = m_copies.takeHanded(operand);
  const int plain = isHanded ? -1 : m_tensors.of(nodes, key);
  const bool isGradient = operand.type == TensorType::GradOutput;
  if (!isHanded && (step.phase == Phase::Forward || isGradient)) addCopies(step.phase, operand, plain);
  for (const Direction direction : m_needs.readDirections(step.phase, operand))
    step.operands.push_back({.key = key, .tensor = m_copies.readBy(operand, direction, plain), .direction = direction});
  if (isGradient && isReadBesideGemms(m_graph.node(operand.node)))
    step.operands.push_back({.key = key, .tensor = plain});
}

bool QuantizeSteps::addHandedOnly(const FusedOperation& entry, Phase phase) {
  const GemmOperand operand = passedOn(entry, phase);
  if (!isQuantizeIn(entry, phase) || m_needs.handed().isReadPlain(operand)) return false;
  const OperandKind kind = phase == Phase::Forward ? OperandKind::Input : OperandKind::GradOutput;
  addCopies(phase, operand, m_tensors.of(entry.nodes, {0, kind, 0}));
  return true;
}

bool QuantizeSteps::isQuantizeIn(const FusedOperation& entry, Phase phase) const {
  return !entry.isFused() && passesOnQuantized(m_graph.node(entry.nodes.front()), passedOn(entry, phase).type);
}

void QuantizeSteps::dropUnreadSources(const PlanOptions& options) {
  if (!m_handOvers.empty()) m_fused.dropUnreadSources(options);
}

/// The rowwise and the columnwise quantized tensor at once.
void QuantizeSteps::addCopies(Phase phase, const GemmOperand& operand, int source) {
  if (m_copies.has(operand)) return;
  if (m_handOvers.contains({operand.node, operand.type, false})) return m_fused.addToProducer(operand, source);
  Step step{.kernel = "quantize", .phase = phase};
  step.operands.push_back({.key = {0, OperandKind::Input, 0}, .tensor = source});
  if (!m_copies.addWork(step, operand, source, 0, {0, OperandKind::Input, 0})) return;
  if (m_handOvers.contains({operand.node, operand.type, true}))
    step.operands.push_back({.key = {0, OperandKind::Input, 2}, .tensor = m_fused.amaxFromProducer(operand, source)});
  step.name = step.copies.front().name;
  step.runsOnce = operand.type == TensorType::Weight && m_graph.pass() == PassKind::Forward;
  if (step.runsOnce) keepResults(step);
  m_tensors.countBytes(step);
  m_steps.push_back(std::move(step));
}

void QuantizeSteps::keepResults(Step& step) {
  step.note = "once: the weight stays the same";
  for (const StepOperand& operand : step.operands)
    if (operand.access == OperandAccess::Write) m_tensors[operand.tensor].isKept = true;
}

}  // namespace fuseline
