// Adds gradients when the last of a value is there.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/gradient_sums.h"

#include "core/support/to_index.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace fuseline {

namespace {

constexpr OperandKey kGradOfX{.member = 0, .kind = OperandKind::GradInput, .slot = 0};

/// On every backend these kernels can add to what is there.
bool addsInProduct(const std::string& kernel) { return kernel == "BasicLinear" || kernel == "linear_backward_bias"; }

}  // namespace

GradientSums::GradientSums(const Graph& graph, PlanTensors& tensors)
    : m_graph(graph), m_tensors(tensors), m_parts(graph.values().size()) {}

std::vector<Step> GradientSums::addOutputGradients() {
  std::vector<Step> sums;
  for (const GraphOutput& output : m_graph.outputs()) {
    const Value& value = m_graph.value(output.value);
    if (!value.needsGradient) continue;
    add(output.value, m_tensors.add("grad." + output.name, value.spec, TensorRole::OutputGradient), sums);
  }
  return sums;
}

void GradientSums::shareSums(const FusedOperation& entry) {
  const Node& node = m_graph.node(entry.nodes.front());
  if (!addsInProduct(entry.kernelName(m_graph)) || !node.needs.inputs.front()) return;
  const ValueId x = node.inputs.front();
  if (m_tensors.numGradients(x) < 2) return;
  const std::vector<int>& known = m_parts[toIndex(x)].tensors;
  const auto shared = std::ranges::find_if(known, [&](int tensor) { return m_shared.contains(tensor); });
  if (shared == known.end())
    m_shared.insert(m_tensors.of(entry.nodes, kGradOfX));
  else
    m_tensors.set({PlanTensorSource::PartialGradient, entry.nodes.front(), 0}, *shared);
}

bool GradientSums::isBegun(const FusedOperation& entry, const OperandKey& key, int tensor) const {
  if (key != kGradOfX || !m_shared.contains(tensor)) return false;
  return std::ranges::count(m_parts[toIndex(m_graph.node(entry.nodes.front()).inputs.front())].tensors, tensor) > 0;
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
  auto& [tensors, numGradients] = m_parts[toIndex(id)];
  if (std::ranges::count(tensors, tensor) == 0) tensors.push_back(tensor);
  if (++numGradients < m_tensors.numGradients(id)) return;
  int whole = tensor;
  if (tensors.size() > 1)
    whole = addSum(id, sums);
  else if (numGradients > 1)
    nameSum(id, tensor);
  else if (isHandedThrough(id, tensor))
    whole = addViewOfOutputGradient(id, tensor);
  m_tensors.set({PlanTensorSource::ValueGradient, id, 0}, whole);
}

/// GEMMs have added all gradients of the value.
void GradientSums::nameSum(ValueId id, int tensor) {
  m_tensors[tensor].name = m_tensors.gradientName(id);
  if (m_graph.value(id).producer < 0) m_tensors[tensor].role = TensorRole::InputGradient;
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
  const std::vector<int>& parts = m_parts[toIndex(id)].tensors;
  for (const int part : parts)
    step.operands.push_back({.key = {0, OperandKind::Input, static_cast<int>(step.operands.size())}, .tensor = part});
  step.operands.push_back({.key = {0, OperandKind::Output, 0}, .tensor = sum, .access = OperandAccess::Write});
  step.flops = value.spec.numElements() * static_cast<std::int64_t>(parts.size() - 1);
  m_tensors.countBytes(step);
  sums.push_back(std::move(step));
  return sum;
}

}  // namespace fuseline
