// Adds quantized tensors, and the scales and amax histories that go with them, to steps.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/quantized_copies.h"

#include "core/ops/grouped_form.h"
#include "core/quant/attention_quantizers.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

PlanTensorSource copySubject(Usage direction) {
  return direction == Usage::Rowwise ? PlanTensorSource::RowwiseCopy : PlanTensorSource::ColumnwiseCopy;
}

TensorRole roleOf(const GemmOperand& operand) {
  return operand.type == TensorType::GradOutput ? TensorRole::Gradient : TensorRole::Intermediate;
}

}  // namespace

TensorKey QuantizedCopies::keyOf(const GemmOperand& operand, Usage direction) const {
  return {copySubject(direction), operand.node, slotOf(operand)};
}

int QuantizedCopies::slotOf(const GemmOperand& operand, int part) const {
  return partSlot(m_graph.node(operand.node), operand.type, operand.slot + part);
}

/// x, k and v of an attention have one scale.
int QuantizedCopies::stateSlotOf(const GemmOperand& operand, int group) const {
  const bool isOfAttention = isQuantizedAttention(m_graph.node(operand.node));
  return isOfAttention ? partSlot(m_graph.node(operand.node), operand.type, 0) : slotOf(operand, group);
}

bool QuantizedCopies::has(const GemmOperand& operand) const {
  return m_tensors.find(keyOf(operand, Usage::Rowwise)) >= 0 || m_tensors.find(keyOf(operand, Usage::Columnwise)) >= 0;
}

bool QuantizedCopies::hasScale(const GemmOperand& operand) const {
  return m_tensors.find({PlanTensorSource::QuantizerScale, operand.node, stateSlotOf(operand)}) >= 0;
}

int QuantizedCopies::readBy(const GemmOperand& operand, Usage direction, int plain) const {
  const TensorQuantizers& quantizers = quantizersOf(m_graph.node(operand.node), operand.type);
  const bool isDequantized = quantizers.isDequantizedInBackward && !quantizers.of(direction);
  const Usage read = isDequantized ? Usage::Rowwise : direction;
  const int copy = m_tensors.find(keyOf(operand, read));
  return copy < 0 ? plain : copy;
}

bool QuantizedCopies::takeHanded(const GemmOperand& reader) {
  const std::optional<GemmOperand> source = m_needs.handed().sourceOf(reader);
  if (!source) return false;
  takeFrom(*source, reader);
  return true;
}

void QuantizedCopies::takeFrom(const GemmOperand& source, const GemmOperand& reader) {
  for (const Usage direction : {Usage::Rowwise, Usage::Columnwise})
    m_tensors.set(keyOf(reader, direction), m_tensors.find(keyOf(source, direction)));
}

QuantizeWork& QuantizedCopies::beginWork(Step& step, const GemmOperand& operand, int source, int member,
                                         const OperandKey& key) {
  return step.copies.emplace_back(QuantizeWork{.name = workName(operand),
                                               .reader = operand.node,
                                               .type = operand.type,
                                               .slot = operand.slot,
                                               .quantizers = {},
                                               .member = member,
                                               .source = key,
                                               .spec = m_tensors[source].spec});
}

bool QuantizedCopies::addWork(Step& step, const GemmOperand& operand, int source, int member, const OperandKey& key) {
  const std::size_t before = step.operands.size();
  beginWork(step, operand, source, member, key);
  for (const Usage direction : {Usage::Rowwise, Usage::Columnwise}) addCopy(step, operand, direction);
  const bool isAny = step.operands.size() > before;
  if (!isAny) step.copies.pop_back();
  if (isAny) addGroupSizes(step, operand);
  if (isAny) addStates(step, operand);
  return isAny;
}

std::vector<int> QuantizedCopies::addWorkOnRows(Step& step, const GemmOperand& operand, int source,
                                                std::span<const Usage> directions) {
  QuantizeWork& work = beginWork(step, operand, source, 0, {0, OperandKind::Input, 0});
  step.operands.push_back({.key = work.source, .tensor = source});
  std::vector<int> copies;
  for (const Usage direction : directions) {
    const bool isRowwise = direction == Usage::Rowwise;
    std::optional<QuantizerSpec>& quantizer = isRowwise ? work.quantizers.rowwise : work.quantizers.columnwise;
    quantizer = quantizersOf(m_graph.node(operand.node), operand.type).of(direction);
    TensorSpec spec = work.spec;
    spec.quantized = formOf(*quantizer, direction);
    copies.push_back(m_tensors.add(tensorName(operand, direction) + "@rank", std::move(spec), roleOf(operand)));
    step.operands.push_back(
        {.key = {0, OperandKind::Output, isRowwise ? 0 : 1}, .tensor = copies.back(), .access = OperandAccess::Write});
  }
  addStates(step, operand);
  return copies;
}

int QuantizedCopies::addTensor(const GemmOperand& operand, Usage direction, TensorSpec spec) {
  spec.quantized = formOf(*quantizersOf(m_graph.node(operand.node), operand.type).of(direction), direction);
  spec.quantized->numGroups = groupsIn(m_graph, operand);
  return m_tensors.add(keyOf(operand, direction), tensorName(operand, direction), std::move(spec), roleOf(operand));
}

std::string QuantizedCopies::tensorName(const GemmOperand& operand, Usage direction) const {
  return fmt::format("{}@{}", quantizedName(m_graph.node(operand.node), operand.type, partNumber(m_graph, operand)),
                     directionName(direction));
}

std::string QuantizedCopies::workName(const GemmOperand& operand) const {
  const Node& node = m_graph.node(operand.node);
  const std::string tensor = quantizedName(node, operand.type, partNumber(m_graph, operand));
  return fmt::format("{}.quantize_{}", node.id, tensor.substr(node.id.size() + 1));
}

void QuantizedCopies::addCopy(Step& step, const GemmOperand& operand, Usage direction) {
  const std::optional<QuantizerSpec>& quantizer = quantizersOf(m_graph.node(operand.node), operand.type).of(direction);
  if (!quantizer || !m_needs.isNeeded(operand, direction)) return;
  const bool isRowwise = direction == Usage::Rowwise;
  QuantizeWork& work = step.copies.back();
  (isRowwise ? work.quantizers.rowwise : work.quantizers.columnwise) = quantizer;
  const int copy = addTensor(operand, direction, work.spec);
  step.operands.push_back(
      {.key = {work.member, OperandKind::Output, isRowwise ? 0 : 1}, .tensor = copy, .access = OperandAccess::Write});
}

/// The rows of weights are divided evenly; those of x by an input of the op.
void QuantizedCopies::addGroupSizes(Step& step, const GemmOperand& operand) {
  if (groupsIn(m_graph, operand) == 0 || operand.type == TensorType::Weight) return;
  const OperandKey sizes{0, OperandKind::Input, GroupedForm::kSplitSizes};
  step.operands.push_back(
      {.key = {step.copies.back().member, OperandKind::Input, 1}, .tensor = m_tensors.of({operand.node}, sizes)});
}

void QuantizedCopies::addStates(Step& step, const GemmOperand& operand) const {
  const int member = step.copies.back().member;
  const int groups = static_cast<int>(std::max<std::int64_t>(groupsIn(m_graph, operand), 1));
  for (int group = 0; group < groups; ++group) {
    const int slot = stateSlotOf(operand, group);
    const int scale = m_tensors.find({PlanTensorSource::QuantizerScale, operand.node, slot});
    if (scale < 0) return;
    step.operands.push_back({.key = {member, OperandKind::Parameter, group}, .tensor = scale});
    step.operands.push_back({.key = {member, OperandKind::Residual, group},
                             .tensor = m_tensors.find({PlanTensorSource::AmaxHistory, operand.node, slot}),
                             .access = OperandAccess::Accumulate});
  }
}

}  // namespace fuseline
