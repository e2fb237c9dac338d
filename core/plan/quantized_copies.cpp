// Adds quantized tensors, and the scales and amax histories that go with them, to steps.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/quantized_copies.h"

#include "core/ops/grouped_form.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

Subject copySubject(Direction direction) {
  return direction == Direction::Rowwise ? Subject::RowwiseCopy : Subject::ColumnwiseCopy;
}

}  // namespace

TensorKey QuantizedCopies::keyOf(const GemmOperand& operand, Direction direction) const {
  return {copySubject(direction), operand.node, slotOf(operand)};
}

int QuantizedCopies::slotOf(const GemmOperand& operand, int part) const {
  return partSlot(m_graph.node(operand.node), operand.type, operand.slot + part);
}

bool QuantizedCopies::has(const GemmOperand& operand) const {
  return m_tensors.find(keyOf(operand, Direction::Rowwise)) >= 0 ||
         m_tensors.find(keyOf(operand, Direction::Columnwise)) >= 0;
}

bool QuantizedCopies::hasScale(const GemmOperand& operand) const {
  return m_tensors.find({Subject::QuantizerScale, operand.node, slotOf(operand)}) >= 0;
}

int QuantizedCopies::readBy(const GemmOperand& operand, Direction direction, int plain) const {
  const TensorQuantizers& quantizers = quantizersOf(m_graph.node(operand.node), operand.type);
  const bool isDequantized = quantizers.isDequantizedInBackward && !quantizers.of(direction);
  const Direction read = isDequantized ? Direction::Rowwise : direction;
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
  for (const Direction direction : {Direction::Rowwise, Direction::Columnwise})
    m_tensors.set(keyOf(reader, direction), m_tensors.find(keyOf(source, direction)));
}

bool QuantizedCopies::addWork(Step& step, const GemmOperand& operand, int source, int member, const OperandKey& key) {
  const std::size_t before = step.operands.size();
  step.copies.push_back({.name = workName(operand),
                         .reader = operand.node,
                         .type = operand.type,
                         .slot = operand.slot,
                         .quantizers = {},
                         .member = member,
                         .source = key,
                         .spec = m_tensors[source].spec});
  for (const Direction direction : {Direction::Rowwise, Direction::Columnwise}) addCopy(step, operand, direction);
  const bool isAny = step.operands.size() > before;
  if (!isAny) step.copies.pop_back();
  if (isAny) addGroupSizes(step, operand);
  if (isAny) addStates(step, operand);
  return isAny;
}

std::string QuantizedCopies::workName(const GemmOperand& operand) const {
  const std::optional<std::int64_t> number = weightNumber(m_graph, operand);
  return fmt::format("{}.quantize_{}{}", m_graph.node(operand.node).id, roleName(operand.type),
                     number ? std::to_string(*number) : "");
}

void QuantizedCopies::addCopy(Step& step, const GemmOperand& operand, Direction direction) {
  const Node& node = m_graph.node(operand.node);
  const std::optional<QuantizerSpec>& quantizer = quantizersOf(node, operand.type).of(direction);
  if (!quantizer || !m_needs.isNeeded(operand, direction)) return;
  const bool isRowwise = direction == Direction::Rowwise;
  QuantizeWork& work = step.copies.back();
  (isRowwise ? work.quantizers.rowwise : work.quantizers.columnwise) = quantizer;
  TensorSpec spec = work.spec;
  spec.quantized = formOf(*quantizer, direction);
  spec.quantized->numGroups = groupsIn(m_graph, operand);
  const std::string name =
      fmt::format("{}@{}", quantizedName(node, operand.type, weightNumber(m_graph, operand)), directionName(direction));
  const TensorRole role = operand.type == TensorType::GradOutput ? TensorRole::Gradient : TensorRole::Intermediate;
  const int copy = m_tensors.add(keyOf(operand, direction), name, std::move(spec), role);
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
    const int slot = slotOf(operand, group);
    const int scale = m_tensors.find({Subject::QuantizerScale, operand.node, slot});
    if (scale < 0) return;
    step.operands.push_back({.key = {member, OperandKind::Parameter, group}, .tensor = scale});
    step.operands.push_back({.key = {member, OperandKind::Residual, group},
                             .tensor = m_tensors.find({Subject::AmaxHistory, operand.node, slot}),
                             .access = OperandAccess::Accumulate});
  }
}

}  // namespace fuseline
