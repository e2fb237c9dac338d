// Adds quantization to the steps that produce tensors.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/fused_quantization.h"

#include "core/plan/storage_layout.h"
#include "core/quant/attention_quantizers.h"
#include "core/support/to_index.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

int nextMember(const Step& producer) { return static_cast<int>(producer.nodes.size() + producer.copies.size()); }

void addNote(Step& step, const std::string& note) { step.note += (step.note.empty() ? "" : "; ") + note; }

const StepOperand* findWrite(const Step& step, int tensor) {
  const auto found = std::ranges::find_if(step.operands, [&](const StepOperand& operand) {
    return operand.tensor == tensor && operand.access == OperandAccess::Write;
  });
  return found == step.operands.end() ? nullptr : &*found;
}

}  // namespace

void FusedQuantization::addToProducer(const GemmOperand& operand, int source) {
  const auto [producer, key] = placeOf(operand, m_tensors.root(source));
  if (!m_copies.addWork(producer, operand, source, nextMember(producer), key)) return;
  QuantizeWork& work = producer.copies.back();
  if (isQuantizedAttention(m_graph.node(operand.node))) work.spec.shape = m_tensors[m_tensors.root(source)].spec.shape;
  const NodeId maker = makerOf(producer, work.source);
  work.isUnrounded =
      m_copies.hasScale(operand) && areNeighbors(maker, operand) && !isQuantizedAttention(m_graph.node(operand.node)) &&
      (isActivation(maker) || (producer.phase == Phase::Forward && isNorm(maker)) || isProduct(producer));
  addNote(producer, fmt::format("quantizes {}", nameOf(operand)));
}

/// TransformerEngine asks the neighbor only, the whole book the step that makes the tensor, if there is one.
FusedQuantization::WorkPlace FusedQuantization::placeOf(const GemmOperand& operand, int produced) {
  Step* const bias = operand.type == TensorType::GradOutput ? biasBehind(operand.node) : nullptr;
  if (bias && !findWrite(*bias, produced) && (m_book == RuleBook::Te || !isMade(produced)))
    return {*bias, {0, OperandKind::GradInput, 0}};
  Step& producer = producerOf(produced);
  return {producer, findWrite(producer, produced)->key};
}

/// By an op: a step that only adds gradients up has none that could quantize.
bool FusedQuantization::isMade(int tensor) const {
  return std::ranges::any_of(
      m_steps, [&](const Step& step) { return !step.nodes.empty() && findWrite(step, tensor) != nullptr; });
}

/// The backward step of the Bias that passes the gradient on to the step of this op, which is not there yet; nullptr:
/// another op does.
Step* FusedQuantization::biasBehind(NodeId node) {
  for (const std::vector<Use>* uses = &usesOf(node); uses->size() == 1; uses = &usesOf(node)) {
    node = uses->front().node;
    if (Step* const step = backwardStepOf(node))
      return step->nodes.size() == 1 && m_graph.node(node).operation->name == "Bias" ? step : nullptr;
  }
  return nullptr;
}

const std::vector<Use>& FusedQuantization::usesOf(NodeId node) const {
  return m_graph.value(m_graph.node(node).outputs.front()).uses;
}

Step* FusedQuantization::backwardStepOf(NodeId node) {
  m_backwardSteps.resize(m_graph.nodes().size(), -1);
  for (; m_numIndexed < m_steps.size(); ++m_numIndexed)
    if (m_steps[m_numIndexed].phase == Phase::Backward)
      for (const NodeId each : m_steps[m_numIndexed].nodes)
        m_backwardSteps[toIndex(each)] = static_cast<int>(m_numIndexed);
  const int step = m_backwardSteps[toIndex(node)];
  return step < 0 ? nullptr : &m_steps[toIndex(step)];
}

int FusedQuantization::amaxFromProducer(const GemmOperand& operand, int source) {
  const int produced = m_tensors.root(source);
  const auto [known, isNew] = m_amaxOf.try_emplace(produced, -1);
  if (!isNew) return known->second;
  const TensorSpec spec = m_tensors[produced].spec;
  const TensorRole role = operand.type == TensorType::GradOutput ? TensorRole::Gradient : TensorRole::Intermediate;
  if (isQuantizedAttention(m_graph.node(operand.node)) && operand.slot > 0)
    known->second = m_amaxOfAttention.at(operand.node);
  else
    known->second = m_tensors.add("amax:" + m_tensors[produced].name, scaleSpec(), role);
  m_amaxOfAttention.emplace(operand.node, known->second);
  m_tensors[known->second].isKept = true;  // backends clear the amaxes of all steps at once
  Step& producer = producerOf(produced);
  const int member = nextMember(producer);
  producer.copies.push_back({.name = m_copies.workName(operand),
                             .reader = operand.node,
                             .type = operand.type,
                             .slot = operand.slot,
                             .quantizers = {},
                             .member = member,
                             .source = findWrite(producer, produced)->key,
                             .spec = spec});
  const NodeId maker = makerOf(producer, producer.copies.back().source);
  producer.copies.back().isUnrounded = areNeighbors(maker, operand) && isActivation(maker);
  producer.operands.push_back(
      {.key = {member, OperandKind::Output, 2}, .tensor = known->second, .access = OperandAccess::Write});
  if (isQuantizedAttention(m_graph.node(operand.node))) orderWrites(known->second);
  addNote(producer, fmt::format("computes the amax of {}", nameOf(operand)));
  return known->second;
}

/// x, k and v have one amax: the first that is computed begins it, the others raise it.
void FusedQuantization::orderWrites(int amax) {
  OperandAccess access = OperandAccess::Write;
  for (Step& step : m_steps)
    for (StepOperand& operand : step.operands)
      if (operand.tensor == amax && operand.access != OperandAccess::Read)
        operand.access = std::exchange(access, OperandAccess::Accumulate);
}

void FusedQuantization::dropUnreadSources(const PlanOptions& options) {
  const std::vector<bool> isNeeded = neededTensors(options);
  for (Step& step : m_steps) {
    if (step.copies.empty() || step.isQuantize()) continue;
    for (const QuantizeWork& work : step.copies)
      std::erase_if(step.operands, [&](const StepOperand& operand) {
        return operand.key == work.source && !isNeeded[toIndex(m_tensors.root(operand.tensor))];
      });
    m_tensors.countBytes(step);
  }
}

/// By tensor: does a step read it or a view of it, or does its memory outlive the run?
std::vector<bool> FusedQuantization::neededTensors(const PlanOptions& options) const {
  std::vector<bool> isNeeded(toIndex(m_tensors.size()), false);
  for (const Step& step : m_steps)
    for (const StepOperand& operand : step.operands)
      if (operand.access == OperandAccess::Read) isNeeded[toIndex(m_tensors.root(operand.tensor))] = true;
  for (int tensor = 0; tensor < m_tensors.size(); ++tensor)
    if (isPersistent(m_tensors[tensor], options)) isNeeded[toIndex(m_tensors.root(tensor))] = true;
  return isNeeded;
}

Step& FusedQuantization::producerOf(int tensor) {
  const auto producer = std::find_if(m_steps.rbegin(), m_steps.rend(),
                                     [&](const Step& step) { return findWrite(step, tensor) != nullptr; });
  assert(producer != m_steps.rend());
  return *producer;
}

NodeId FusedQuantization::makerOf(const Step& producer, const OperandKey& result) const {
  return producer.nodes[toIndex(result.member)];
}

/// TransformerEngine's ops quantize for the op beside them only: one that passes the tensor on, such as
/// MakeExtraOutput, gets it rounded.
bool FusedQuantization::areNeighbors(NodeId maker, const GemmOperand& operand) const {
  const Node& reader = m_graph.node(operand.node);
  if (operand.type != TensorType::GradOutput) return m_graph.value(reader.inputs[0]).producer == maker;
  const std::vector<Use>& uses = m_graph.value(reader.outputs[0]).uses;
  return std::ranges::any_of(uses, [&](const Use& use) { return use.node == maker; });
}

/// Its linear ops quantize what their GEMM has summed, with the bias that is part of it.
bool FusedQuantization::isProduct(const Step& producer) const {
  const auto nameOf = [&](std::size_t member) { return m_graph.node(producer.nodes[member]).operation->name; };
  const std::size_t count = producer.nodes.size();
  const bool isOfGemm = count == 1 || (count == 2 && producer.phase == Phase::Forward && nameOf(1) == "Bias");
  return isOfGemm && nameOf(0) == "BasicLinear";
}

/// TransformerEngine's gates that scale their rows ignore the quantizers of their neighbours.
bool FusedQuantization::isActivation(NodeId id) const {
  const Node& node = m_graph.node(id);
  return node.operation->category == "Activation" && node.inputs.size() == 1;
}

/// And so does its L2Normalization.
bool FusedQuantization::isNorm(NodeId id) const {
  const BasicOperation& operation = *m_graph.node(id).operation;
  return operation.category == "Normalization" && operation.name != "L2Normalization";
}

std::string FusedQuantization::nameOf(const GemmOperand& operand) const {
  return quantizedName(m_graph.node(operand.node), operand.type, partNumber(m_graph, operand));
}

}  // namespace fuseline
