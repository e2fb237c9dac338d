// Quantizes each tensor once, before the first GEMM that reads it.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/quantize_steps.h"

#include "core/quant/attention_quantizers.h"
#include "core/support/to_index.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

bool isRandom(const TensorQuantizers& quantizers) {
  const auto rounds = [](const std::optional<QuantizerSpec>& quantizer) {
    return quantizer && quantizer->roundsStochastically;
  };
  return rounds(quantizers.rowwise) || rounds(quantizers.columnwise);
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
      m_fusedOperands(report.fusedOperands.begin(), report.fusedOperands.end()),
      m_needs(graph, report),
      m_copies(graph, m_needs, tensors),
      m_fused(graph, report.book, tensors, m_copies, steps),
      m_gathers(graph, report, m_needs, tensors, m_copies, steps) {}

void QuantizeSteps::addGemmOperands(Step& step, const std::vector<NodeId>& nodes, const OperandKey& key,
                                    const GemmOperand& operand) {
  const bool isHanded = m_copies.takeHanded(operand);
  const bool isGathered = m_gathers.isGathered(operand);
  const int plain = isHanded || isGathered ? -1 : m_tensors.of(nodes, key);
  const bool isGradient = operand.type == TensorType::GradOutput;
  if (isGathered && !m_copies.has(operand)) m_gathers.addSteps(step.phase, operand);
  if (plain >= 0 && (step.phase == Phase::Forward || isGradient)) addCopies(step.phase, operand, plain);
  const std::vector<Usage> directions = m_needs.readDirections(step.phase, operand);
  if (std::ranges::count(directions, Usage::Columnwise) > 0) m_gathers.orderColumns(step.phase, operand);
  for (const Usage direction : directions)
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
  if (!m_fusedOperands.empty()) m_fused.dropUnreadSources(options);
}

/// The rowwise and the columnwise quantized tensor at once.
void QuantizeSteps::addCopies(Phase phase, const GemmOperand& operand, int source) {
  if (m_copies.has(operand) || takesCopiesOfAnother(operand, source)) return;
  if (m_fusedOperands.contains({operand.node, operand.type, false})) return m_fused.addToProducer(operand, source);
  if (isWeightOfTraining(operand)) return addWeight(operand, source);
  if (Step* const step = stepOfAttention(operand)) return join(*step, operand, source);
  addStep(phase, operand, source);
}

/// Quantized tensors that follow from the tensor alone are the same for all ops that read it.
bool QuantizeSteps::takesCopiesOfAnother(const GemmOperand& operand, int source) {
  const Node& node = m_graph.node(operand.node);
  const TensorQuantizers& quantizers = quantizersOf(node, operand.type);
  const bool isOwn = quantizers.isDelayed() || isRandom(quantizers) || groupsIn(m_graph, operand) > 0 ||
                     passesOnQuantized(node, operand.type) || isQuantizedAttention(node);
  if (isOwn) return false;
  std::vector<QuantizedReader>& others = m_readersOf[m_tensors.root(source)];
  const auto other = std::ranges::find_if(others, [&](const QuantizedReader& reader) {
    return quantizersOf(m_graph.node(reader.operand.node), reader.operand.type) == quantizers &&
           m_tensors[reader.source].spec == m_tensors[source].spec && areNeededAlike(operand, reader.operand);
  });
  if (other != others.end()) m_copies.takeFrom(other->operand, operand);
  const bool isTaken = other != others.end();
  if (!isTaken) others.push_back({operand, source});
  return isTaken;
}

bool QuantizeSteps::areNeededAlike(const GemmOperand& a, const GemmOperand& b) const {
  const auto isAlike = [&](Usage direction) {
    return m_needs.isNeeded(a, direction) == m_needs.isNeeded(b, direction);
  };
  return isAlike(Usage::Rowwise) && isAlike(Usage::Columnwise);
}

/// Weights are there from the start, so that one step quantizes those of the next linear ops, too.
void QuantizeSteps::addWeight(const GemmOperand& operand, int source) {
  if (Step* const step = stepForWeight(operand, source)) return join(*step, operand, source);
  m_weightStep = static_cast<int>(m_steps.size());
  addStep(Phase::Forward, operand, source);
}

bool QuantizeSteps::isUpdated(const GemmOperand& weight) const {
  return m_graph.optimizer() && m_graph.node(weight.node).needs.parameters[toIndex(weight.slot)];
}

bool QuantizeSteps::isWeightOfTraining(const GemmOperand& operand) const {
  return operand.type == TensorType::Weight && m_graph.pass() == ExecutionMode::Training;
}

/// Kernels quantize several tensors at once that have one dtype and one kind of scale, and no groups of rows. NVFP4
/// finds an amax for each direction.
Step* QuantizeSteps::stepForWeight(const GemmOperand& operand, int source) const {
  constexpr std::size_t kMaxWeights = 8;
  if (m_weightStep < 0) return nullptr;
  Step& step = m_steps[toIndex(m_weightStep)];
  const QuantizeWork& first = step.copies.front();
  const TensorQuantizers& wanted = quantizersOf(m_graph.node(operand.node), operand.type);
  const bool isSame = quantizersOf(m_graph.node(first.reader), first.type) == wanted &&
                      first.spec.dtype == m_tensors[source].spec.dtype;
  const bool hasGroups =
      groupsIn(m_graph, operand) > 0 || groupsIn(m_graph, {first.reader, first.type, first.slot}) > 0;
  const bool isPlain = !hasGroups && !(wanted.rowwise && isNvfp4(wanted.rowwise->scaling));
  return isSame && isPlain && step.copies.size() < kMaxWeights ? &step : nullptr;
}

/// One scale for x, k and v: one step quantizes them. nullptr: it is still to be made.
Step* QuantizeSteps::stepOfAttention(const GemmOperand& operand) const {
  if (operand.type != TensorType::Input || !isQuantizedAttention(m_graph.node(operand.node))) return nullptr;
  const bool isMade =
      !m_steps.empty() && m_steps.back().isQuantize() && m_steps.back().copies.front().reader == operand.node;
  return isMade ? &m_steps.back() : nullptr;
}

void QuantizeSteps::join(Step& step, const GemmOperand& operand, int source) {
  const int member = static_cast<int>(step.copies.size());
  const OperandKey key{member, OperandKind::Input, 0};
  if (!m_copies.addWork(step, operand, source, member, key)) return;
  step.operands.push_back({.key = key, .tensor = source});
  addKnownAmax(step, operand, source);
  std::vector<std::string> names;
  for (const QuantizeWork& work : step.copies)
    names.push_back(
        quantizedName(m_graph.node(work.reader), work.type, partNumber(m_graph, {work.reader, work.type, work.slot})));
  step.name = fmt::format("quantize({})", fmt::join(names, ", "));
  if (step.runsOnce) keepResults(step);
  m_tensors.countBytes(step);
}

void QuantizeSteps::addStep(Phase phase, const GemmOperand& operand, int source) {
  Step step{.kernel = "quantize", .phase = phase};
  step.operands.push_back({.key = {0, OperandKind::Input, 0}, .tensor = source});
  if (!m_copies.addWork(step, operand, source, 0, {0, OperandKind::Input, 0})) return;
  addKnownAmax(step, operand, source);
  step.name = step.copies.front().name;
  step.runsOnce = isQuantizedOnce(operand);
  if (step.runsOnce) keepResults(step);
  m_tensors.countBytes(step);
  m_steps.push_back(std::move(step));
}

/// The amax of the work that was added last, if the producer of its tensor finds it.
void QuantizeSteps::addKnownAmax(Step& step, const GemmOperand& operand, int source) {
  if (!m_fusedOperands.contains({operand.node, operand.type, true})) return;
  step.operands.push_back(
      {.key = {step.copies.back().member, OperandKind::Input, 2}, .tensor = m_fused.amaxFromProducer(operand, source)});
}

/// An optimizer updates weights in high precision, also those that are stored quantized without one.
bool QuantizeSteps::isQuantizedOnce(const GemmOperand& operand) const {
  if (operand.type != TensorType::Weight) return false;
  const Node& node = m_graph.node(operand.node);
  return m_graph.pass() == ExecutionMode::Inference || (node.quantizers.storesWeight && !isUpdated(operand));
}

void QuantizeSteps::dropStoredWeights(const PlanOptions& options) {
  if (options.keepIntermediates) return;
  std::vector<bool> isRead(toIndex(m_tensors.size()), false);
  for (const Step& step : m_steps)
    for (const StepOperand& operand : step.operands)
      if (!step.runsOnce) isRead[toIndex(m_tensors.root(operand.tensor))] = true;
  for (const Step& step : m_steps)
    for (const QuantizeWork& work : step.copies) {
      const bool isStored = step.runsOnce && m_graph.node(work.reader).quantizers.storesWeight;
      const int source = isStored ? m_tensors.root(step.find(work.source)->tensor) : -1;
      if (isStored && !isRead[toIndex(source)]) m_tensors[source].isInitialOnly = true;
    }
}

void QuantizeSteps::keepResults(Step& step) {
  const bool isStored = m_graph.node(step.copies.front().reader).quantizers.storesWeight;
  step.note = isStored ? "once: the weight is stored quantized" : "once: the weight does not change";
  for (const StepOperand& operand : step.operands)
    if (operand.access == OperandAccess::Write) m_tensors[operand.tensor].isKept = true;
}

}  // namespace fuseline
