// Member by member execution of a step in double precision, driven by the requested results.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/step_reference.h"

#include "core/graph/input_rounding.h"
#include "core/graph/row_attributes.h"
#include "core/quant/attention_quantizers.h"
#include "core/tensor/tensor.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

namespace fuseline {

namespace {

ReferenceTensor zeros(const Shape& shape) {
  return {.shape = shape, .values = std::vector<double>(static_cast<std::size_t>(numElements(shape)), 0.0)};
}

/// An empty term denotes a gradient that is absent.
void addTo(ReferenceTensor& sum, const ReferenceTensor& term) {
  if (term.values.empty()) return;
  std::ranges::transform(sum.values, term.values, sum.values.begin(), std::plus<>());
}

void expectCount(const Node& node, std::string_view function, std::string_view what, std::size_t given,
                 std::size_t declared) {
  const Verdict verdict = checkCount(*node.operation, function, what, given, declared);
  if (!verdict) throw std::logic_error(verdict.reason());
}

/// The main input of a linear op or a norm is rounded to the weight's dtype, which may be another.
ReferenceTensor asRead(const Graph& graph, const Node& op, const ReferenceTensor& input, int slot) {
  const std::optional<DType> dtype = slot == 0 ? roundedInput(graph, op) : std::nullopt;
  if (!dtype) return input;
  return {.shape = input.shape, .values = Tensor::fromDoubles({*dtype, input.shape}, input.values).toDoubles()};
}

}  // namespace

StepReference::StepReference(const Graph& graph, const Step& step, StepTensors operands)
    : m_graph(graph), m_step(step), m_tensors(std::move(operands)) {}

const ReferenceTensor& StepReference::value(OperandKey key) {
  if (const auto found = m_tensors.find(key); found != m_tensors.end()) return found->second;
  ReferenceTensor made = make(key);
  return m_tensors.insert_or_assign(key, std::move(made)).first->second;
}

ReferenceTensor StepReference::make(OperandKey key) {
  if (m_step.nodes.empty()) return sumOfInputs();
  switch (key.kind) {
    case OperandKind::Input: return inputValue(key);
    case OperandKind::Output:
    case OperandKind::Residual: runForward(key.member); return m_tensors.at(key);
    case OperandKind::GradOutput: return outputGradient(key);
    case OperandKind::GradInput:
    case OperandKind::GradParameter: runBackward(key.member); return m_tensors.at(key);
    case OperandKind::Parameter: break;
  }
  throw std::logic_error(
      fmt::format("{} of {} is needed but not an operand of the step.", toString(key), node(key.member).id));
}

ReferenceTensor StepReference::sumOfInputs() const {
  ReferenceTensor sum = zeros(m_tensors.begin()->second.shape);
  for (const auto& [key, term] : m_tensors) addTo(sum, term);
  return sum;
}

Attributes StepReference::attributesOf(int member) const {
  const std::int64_t firstRow = m_step.window.first;
  return firstRow > 0 ? attributesFromRow(m_graph, m_step.nodes[static_cast<std::size_t>(member)], firstRow)
                      : computedAttributes(node(member));
}

void StepReference::runForward(int member) {
  const Node& op = node(member);
  std::vector<ReferenceTensor> inputs;
  std::vector<ReferenceTensor> parameters;
  for (int slot = 0; slot < static_cast<int>(op.inputs.size()); ++slot)
    inputs.push_back(asRead(m_graph, op, value({member, OperandKind::Input, slot}), slot));
  for (int slot = 0; slot < static_cast<int>(op.parameters.size()); ++slot)
    parameters.push_back(value({member, OperandKind::Parameter, slot}));
  ReferenceForward made = op.operation->forwardCompute(attributesOf(member), inputs, parameters);
  expectCount(op, "forwardCompute", "outputs", made.outputs.size(), op.outputs.size());
  expectCount(op, "forwardCompute", "residuals", made.residuals.size(), op.residuals.size());
  keep(member, OperandKind::Output, std::move(made.outputs));
  keep(member, OperandKind::Residual, std::move(made.residuals));
}

void StepReference::runBackward(int member) {
  const Node& op = node(member);
  SavedValues saved;
  const OperationContext& context = m_step.context ? *m_step.context : op.context;
  saved.setState(context.state);
  std::deque<ReferenceTensor> inputs;  // saved values are pointers
  for (const SavedTensor& key : context.tensors) {
    const ReferenceTensor& kept = value({member, key.kind, key.slot});
    const bool isInput = key.kind == OperandKind::Input;
    saved.add(key, isInput ? inputs.emplace_back(asRead(m_graph, op, kept, key.slot)) : kept);
  }
  std::vector<ReferenceTensor> gradients;
  for (int slot = 0; slot < static_cast<int>(op.outputs.size()); ++slot)
    gradients.push_back(value({member, OperandKind::GradOutput, slot}));
  ReferenceBackward made = op.operation->backwardCompute(attributesOf(member), saved, gradients);
  expectCount(op, "backwardCompute", "input gradients", made.inputs.size(), op.inputs.size());
  expectCount(op, "backwardCompute", "parameter gradients", made.parameters.size(), op.parameters.size());
  keep(member, OperandKind::GradInput, std::move(made.inputs));
  keep(member, OperandKind::GradParameter, std::move(made.parameters));
}

void StepReference::keep(int member, OperandKind kind, std::vector<ReferenceTensor> tensors) {
  for (std::size_t slot = 0; slot < tensors.size(); ++slot)
    m_tensors.try_emplace({member, kind, static_cast<int>(slot)}, std::move(tensors[slot]));
}

const ReferenceTensor& StepReference::inputValue(OperandKey key) {
  const ValueId wanted = node(key.member).inputs[static_cast<std::size_t>(key.slot)];
  const Value& edge = m_graph.value(wanted);
  for (const auto& [given, tensor] : m_tensors)  // the same tensor may be an operand of another member
    if (given.kind == OperandKind::Input && node(given.member).inputs[static_cast<std::size_t>(given.slot)] == wanted)
      return tensor;
  if (const int producer = memberOf(edge.producer); producer >= 0)
    return value({producer, OperandKind::Output, edge.port});
  throw std::logic_error(
      fmt::format("{}, read by {}, is needed but not an operand of the step.", edge.name, node(key.member).id));
}

ReferenceTensor StepReference::outputGradient(OperandKey key) {
  const Value& edge = m_graph.value(node(key.member).outputs[static_cast<std::size_t>(key.slot)]);
  ReferenceTensor sum = zeros(edge.spec.shape);
  for (const Use& use : edge.uses)
    if (const int reader = memberOf(use.node); reader >= 0)
      addTo(sum, value({reader, OperandKind::GradInput, use.slot}));
  return sum;
}

int StepReference::memberOf(NodeId id) const {
  const auto found = std::ranges::find(m_step.nodes, id);
  return found == m_step.nodes.end() ? -1 : static_cast<int>(found - m_step.nodes.begin());
}

}  // namespace fuseline
