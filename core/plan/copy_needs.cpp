// Follows from the gradients that an op has to compute, and from who reads what a Quantize passes on.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/copy_needs.h"

#include "core/quant/attention_quantizers.h"

#include <algorithm>

namespace fuseline {

std::vector<Usage> CopyNeeds::readDirections(Phase phase, const GemmOperand& operand) const {
  if (phase == Phase::Forward) return {Usage::Rowwise};
  if (operand.type != TensorType::GradOutput) return {Usage::Columnwise};
  const Node& node = m_graph.node(operand.node);
  if (isQuantizedAttention(node)) return {Usage::Rowwise};
  std::vector<Usage> directions;
  if (node.needs.inputs.front()) directions.push_back(Usage::Rowwise);
  if (numWeights(node) > 0 && node.needs.parameters.front()) directions.push_back(Usage::Columnwise);
  return directions;
}

bool CopyNeeds::isNeeded(const GemmOperand& operand, Usage direction) const {
  if (passesOnQuantized(m_graph.node(operand.node), operand.type)) return isNeededByReaders(operand, direction);
  const GradientNeeds& needs = m_graph.node(operand.node).needs;
  if (operand.type == TensorType::GradOutput) {
    const std::vector<Usage> read = readDirections(Phase::Backward, operand);
    return std::ranges::find(read, direction) != read.end();
  }
  if (direction == Usage::Rowwise || isQuantizedAttention(m_graph.node(operand.node)))
    return direction == Usage::Rowwise;
  return operand.type == TensorType::Input ? needs.parameters.front() : needs.inputs.front();
}

bool CopyNeeds::isNeededByReaders(const GemmOperand& source, Usage direction) const {
  const std::vector<GemmOperand> readers = m_handed.readersOf(source);
  const bool isReadPlain = direction == Usage::Rowwise && m_handed.isReadPlain(source);
  return isReadPlain ||
         std::ranges::any_of(readers, [&](const GemmOperand& reader) { return isNeeded(reader, direction); });
}

bool isReadBesideGemms(const Node& node) {
  if (isQuantizedAttention(node)) return false;
  const auto& [inputs, parameters] = node.needs;
  return std::find(inputs.begin() + 1, inputs.end(), true) != inputs.end() ||
         std::find(parameters.begin() + numWeights(node), parameters.end(), true) != parameters.end();
}

std::int64_t groupsIn(const Graph& graph, const GemmOperand& operand) {
  return partNumber(graph, operand) ? 0 : rowGroups(graph.node(operand.node));
}

std::optional<std::int64_t> partNumber(const Graph& graph, const GemmOperand& operand) {
  const Node& node = graph.node(operand.node);
  const bool isOfAttention = operand.type == TensorType::Input && isQuantizedAttention(node);
  const bool isOneOfMany = isOfAttention || (operand.type == TensorType::Weight && numWeights(node) > 1);
  return isOneOfMany ? std::optional<std::int64_t>(operand.slot) : std::nullopt;
}

}  // namespace fuseline
