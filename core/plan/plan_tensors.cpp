// Names the tensors of a plan and says what each is for.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/plan_tensors.h"

#include "core/support/to_index.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

std::vector<int> countGradients(const Graph& graph) {
  std::vector<int> counts;
  for (const Value& value : graph.values())
    counts.push_back(static_cast<int>(std::ranges::count_if(
        value.uses, [&](const Use& use) { return graph.node(use.node).needs.inputs[toIndex(use.slot)]; })));
  for (const GraphOutput& output : graph.outputs()) ++counts[toIndex(output.value)];
  return counts;
}

std::string valueName(const Graph& graph, const Value& value) {
  if (value.producer < 0) return value.name;
  const Node& node = graph.node(value.producer);
  return node.id + ":" + node.operation->outputs[toIndex(value.port)].name;
}

}  // namespace

PlanTensors::PlanTensors(const Graph& graph) : m_graph(graph), m_numGradients(countGradients(graph)), m_index(graph) {
  for (const ValueId id : graph.inputs())
    add({PlanTensorSource::Value, id, 0}, graph.value(id).name, graph.value(id).spec, TensorRole::Input);
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    for (int slot = 0; slot < static_cast<int>(node.parameters.size()); ++slot)
      add({PlanTensorSource::Parameter, id, slot}, node.parameterName(slot), node.parameters[toIndex(slot)],
          TensorRole::Parameter);
  }
}

int PlanTensors::add(std::string name, TensorSpec spec, TensorRole role) {
  const int tensor = size();
  m_tensors.push_back({.name = std::move(name), .spec = std::move(spec), .role = role});
  m_viewOf.push_back(tensor);
  return tensor;
}

int PlanTensors::add(const TensorKey& key, std::string name, TensorSpec spec, TensorRole role) {
  return m_index[key] = add(std::move(name), std::move(spec), role);
}

int PlanTensors::of(const std::vector<NodeId>& nodes, const OperandKey& key) {
  const TensorKey tensorKey = keyOf(nodes, key);
  if (const int known = find(tensorKey); known >= 0) return known;
  const NodeId id = nodes[toIndex(key.member)];
  return add(tensorKey, nameOf(m_graph.node(id), key), m_graph.spec(id, key.kind, key.slot), roleOf(nodes, key));
}

void PlanTensors::makeView(int tensor, int source) { m_viewOf[toIndex(tensor)] = source; }

int PlanTensors::root(int tensor) const {
  while (m_viewOf[toIndex(tensor)] != tensor) tensor = m_viewOf[toIndex(tensor)];
  return tensor;
}

int PlanTensors::numGradients(ValueId id) const { return m_numGradients[toIndex(id)]; }

std::string PlanTensors::gradientName(ValueId id) const { return "grad." + valueName(m_graph, m_graph.value(id)); }

void PlanTensors::countBytes(Step& step) const {
  step.bytesRead = step.bytesWritten = 0;
  std::set<int> seen;
  for (const StepOperand& operand : step.operands) {
    if (!seen.insert(operand.tensor).second) continue;
    const std::int64_t bytes = m_tensors[toIndex(operand.tensor)].spec.bytes();
    if (operand.access != OperandAccess::Write) step.bytesRead += bytes;
    if (operand.access != OperandAccess::Read) step.bytesWritten += bytes;
  }
}

TensorKey PlanTensors::keyOf(const std::vector<NodeId>& nodes, const OperandKey& key) const {
  const NodeId id = nodes[toIndex(key.member)];
  const Node& node = m_graph.node(id);
  switch (key.kind) {
    case OperandKind::Input: return {PlanTensorSource::Value, node.inputs[toIndex(key.slot)], 0};
    case OperandKind::Output: return {PlanTensorSource::Value, node.outputs[toIndex(key.slot)], 0};
    case OperandKind::Parameter: return {PlanTensorSource::Parameter, id, key.slot};
    case OperandKind::Residual: return {PlanTensorSource::Residual, id, key.slot};
    case OperandKind::GradOutput: return {PlanTensorSource::ValueGradient, node.outputs[toIndex(key.slot)], 0};
    case OperandKind::GradInput: return {PlanTensorSource::PartialGradient, id, key.slot};
    case OperandKind::GradParameter: return {PlanTensorSource::ParameterGradient, id, key.slot};
  }
  assert(false);
  return {};
}

std::string PlanTensors::nameOf(const Node& node, const OperandKey& key) const {
  switch (key.kind) {
    case OperandKind::Output: return node.id + ":" + node.operation->outputs[toIndex(key.slot)].name;
    case OperandKind::Residual: return node.id + ":" + node.operation->residuals[toIndex(key.slot)].name;
    case OperandKind::GradParameter: return node.parameterGradientName(key.slot);
    case OperandKind::GradInput: return partialName(node, key.slot);
    default: assert(false); return {};
  }
}

/// The gradient of a value has the value's name; where several readers contribute, each part also names its reader,
/// and one that reads the value more than once the input.
std::string PlanTensors::partialName(const Node& node, int slot) const {
  const ValueId id = node.inputs[toIndex(slot)];
  const std::string name = gradientName(id);
  if (numGradients(id) == 1) return name;
  if (std::ranges::count(node.inputs, id) == 1) return fmt::format("{}@{}", name, node.id);
  return fmt::format("{}@{}:{}", name, node.id, node.operation->inputs[toIndex(slot)].name);
}

TensorRole PlanTensors::roleOf(const std::vector<NodeId>& nodes, const OperandKey& key) const {
  const Node& node = m_graph.node(nodes[toIndex(key.member)]);
  if (key.kind == OperandKind::GradParameter)
    return node.gradientSink(key.slot) == GradientSink::Accumulate ? TensorRole::MainGradient
                                                                   : TensorRole::ParameterGradient;
  if (key.kind != OperandKind::GradInput) return TensorRole::Intermediate;
  const ValueId id = node.inputs[toIndex(key.slot)];
  return m_graph.value(id).producer < 0 && numGradients(id) == 1 ? TensorRole::InputGradient : TensorRole::Gradient;
}

}  // namespace fuseline
