// Adds gradients when the last of a value is there.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/gradient_sums.h"

#include "core/support/to_index.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace fuseline {

GradientSums::GradientSums(const Graph& graph, PlanTensors& tensors)
    : m_graph(graph), m_tensors(tensors), m_gradients(graph.values().size()) {}

std::vector<Step> GradientSums::addOutputGradients() {
  std::vector<Step> sums;
  for (const GraphOutput& output : m_graph.outputs()) {
    const Value& value = m_graph.value(output.value);
    if (!value.needsGradient) continue;
    add(output.value, m_tensors.add("grad." + output.name, value.spec, TensorRole::OutputGradient), sums);
  }
  return sums;
}

std::vector<Step> GradientSums::addInputGradients(NodeId id) {
  std::vector<Step> sums;
  const Node& node = m_graph.node(id);
  for (int slot = 0; slot < static_cast<int>(node.inputs.size()); ++slot)
    if (const int tensor = m_tensors.find({PlanTensorSource::PartialGradient, id, slot}); tensor >= 0)
      add(node.inputs[toIndex(slot)], tensor, sums);
  return sums;
}

void GradientSums::add(ValueId id, int tensor, std::vector<Step>& sums) {
  m_gradients[toIndex(id)].push_back(tensor);
  if (static_cast<int>(m_gradients[toIndex(id)].size()) < m_tensors.numGradients(id)) return;
  int whole = tensor;
  if (m_tensors.numGradients(id) > 1)
    whole = addSum(id, sums);
  else if (isHandedThrough(id, tensor))
    whole = addViewOfOutputGradient(id, tensor);
  m_tensors.set({PlanTensorSource::ValueGradient, id, 0}, whole);
}

/// Is the value an input that is an output, too, and whose gradient comes from nowhere else?
bool GradientSums::isHandedThrough(ValueId id, int tensor) const {
  return m_graph.value(id).producer < 0 && m_tensors[tensor].role == TensorRole::OutputGradient;
}

int GradientSums::addViewOfOutputGradient(ValueId id, int ofOutput) {
  const int tensor = m_tensors.add(m_tensors.gradientName(id), m_graph.value(id).spec, TensorRole::InputGradient);
  m_tensors.makeView(tensor, ofOutput);
  return tensor;
}

int GradientSums::addSum(ValueId id, std::vector<Step>& sums) {
  const Value& value = m_graph.value(id);
  const std::string name = m_tensors.gradientName(id);
  const int sum =
      m_tensors.add(name, value.spec, value.producer < 0 ? TensorRole::InputGradient : TensorRole::Gradient);
  Step step{.name = name, .kernel = "accumulate", .phase = Phase::Backward};
  for (const int part : m_gradients[toIndex(id)])
    step.operands.push_back({.key = {0, OperandKind::Input, static_cast<int>(step.operands.size())}, .tensor = part});
  step.operands.push_back({.key = {0, OperandKind::Output, 0}, .tensor = sum, .access = OperandAccess::Write});
  step.flops = value.spec.numElements() * static_cast<std::int64_t>(m_gradients[toIndex(id)].size() - 1);
  m_tensors.countBytes(step);
  sums.push_back(std::move(step));
  return sum;
}

}  // namespace fuseline
