// Builds graphs: inference as nodes are added, gradient needs and contexts at the end.
// SPDX-License-Identifier: Apache-2.0
#include "core/graph/graph.h"

#include "core/support/text.h"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

template <class Range>
int indexWhere(const Range& items, auto predicate) {
  const auto found = std::ranges::find_if(items, predicate);
  return found == items.end() ? -1 : static_cast<int>(found - items.begin());
}

const std::string& pathOf(const Graph& graph, int sequential) {
  return graph.sequentials()[static_cast<std::size_t>(sequential)].path;
}

std::string toString(const Graph& graph, const Node& node) {
  std::vector<std::string> inputs;
  for (const ValueId id : node.inputs) inputs.push_back(graph.value(id).name);
  std::vector<std::string> outputs;
  for (const ValueId id : node.outputs)
    outputs.push_back(fmt::format("{} {}", graph.value(id).name, fuseline::toString(graph.value(id).spec)));
  const std::string place = node.sequential < 0 ? "" : "in Sequential " + pathOf(graph, node.sequential);
  return fmt::format("{} = {}({}) -> {}{}", node.id, node.operation->name, fmt::join(inputs, ", "),
                     fmt::join(outputs, ", "), inParentheses(place));
}

/// A main_grad buffer is float32.
std::vector<TensorSpec> gradientSpecs(const Node& node) {
  std::vector<TensorSpec> specs = node.parameters;
  for (int slot = 0; slot < static_cast<int>(specs.size()); ++slot)
    if (node.gradientSink(slot) != GradientSink::Own) specs[static_cast<std::size_t>(slot)].dtype = DType::F32;
  return specs;
}

}  // namespace

bool Node::isAt(std::string_view place) const {
  const bool isInside = id.size() > place.size() && id.starts_with(place) && id[place.size()] == '.';
  return id == place || owner == place || isInside;
}

std::string Node::parameterName(int slot) const {
  return path + "." + operation->parameters[static_cast<std::size_t>(slot)].name;
}

GradientSink Node::gradientSink(int slot) const { return fuseline::gradientSink(*operation, attributes, slot); }

std::string Node::parameterGradientName(int slot) const {
  return (gradientSink(slot) == GradientSink::Own ? "grad." : "main_grad.") + parameterName(slot);
}

GradientNeeds Node::delayedNeeds() const {
  GradientNeeds delayed{.inputs = std::vector<bool>(needs.inputs.size()), .parameters = needs.parameters};
  for (std::size_t slot = 0; slot < delayed.parameters.size(); ++slot)
    if (!isGradientDelayed(*operation, attributes, static_cast<int>(slot))) delayed.parameters[slot] = false;
  return delayed;
}

GradientNeeds Node::promptNeeds() const {
  GradientNeeds prompt = needs;
  const GradientNeeds delayed = delayedNeeds();
  for (std::size_t slot = 0; slot < prompt.parameters.size(); ++slot)
    if (delayed.parameters[slot]) prompt.parameters[slot] = false;
  return prompt;
}

NodeId Graph::findNode(std::string_view id) const {
  return indexWhere(m_nodes, [&](const Node& node) { return node.id == id; });
}

ValueId Graph::findValue(std::string_view name) const {
  if (const auto alias = m_aliases.find(name); alias != m_aliases.end()) return alias->second;
  return indexWhere(m_values, [&](const Value& value) { return value.name == name; });
}

std::vector<TensorSpec> Graph::inputSpecs(NodeId id) const {
  std::vector<TensorSpec> specs;
  for (const ValueId input : node(id).inputs) specs.push_back(value(input).spec);
  return specs;
}

const TensorSpec& Graph::spec(NodeId id, OperandKind kind, int slot) const {
  const Node& n = node(id);
  const auto index = static_cast<std::size_t>(slot);
  switch (kind) {
    case OperandKind::Input:
    case OperandKind::GradInput: return value(n.inputs[index]).spec;
    case OperandKind::Output:
    case OperandKind::GradOutput: return value(n.outputs[index]).spec;
    case OperandKind::Parameter: return n.parameters[index];
    case OperandKind::GradParameter: return n.parameterGradients[index];
    case OperandKind::Residual: return n.residuals[index];
  }
  assert(false);
  return n.parameters[index];
}

Graph Graph::withQuantizers(std::vector<LinearQuantizers> quantizers, std::optional<DelayedScaling> delayedScaling) && {
  for (std::size_t id = 0; id < m_nodes.size(); ++id) m_nodes[id].quantizers = quantizers[id];
  m_delayedScaling = std::move(delayedScaling);
  return std::move(*this);
}

Graph Graph::withOptimizer(const std::optional<AdamW>& optimizer) && {
  if (m_pass == ExecutionMode::Training) m_optimizer = optimizer;
  return std::move(*this);
}

void GraphBuilder::reserve(std::size_t numNodes) {
  m_graph.m_nodes.reserve(numNodes);
  m_graph.m_values.reserve(numNodes);
}

ValueId GraphBuilder::addInput(std::string name, TensorSpec spec, bool requiresGradient) {
  const auto id = static_cast<ValueId>(m_graph.m_values.size());
  m_graph.m_values.push_back({.name = std::move(name), .spec = std::move(spec)});
  m_graph.m_inputs.push_back(id);
  m_requiresGradient.push_back(requiresGradient && isFloat(m_graph.value(id).spec.dtype));
  return id;
}

Result<NodeId> GraphBuilder::addNode(std::string id, std::string owner, const FusibleOperation& operation,
                                     Attributes attributes, std::vector<ValueId> inputs) {
  Result<OperationPointer> own = specialised(operation, attributes);
  if (!own) return own.error();
  return addNode(std::move(id), std::move(owner), std::move(*own), std::move(attributes), std::move(inputs));
}

Result<NodeId> GraphBuilder::addNode(std::string id, std::string owner, OperationPointer operation,
                                     Attributes attributes, std::vector<ValueId> inputs) {
  std::vector<TensorSpec> inputSpecs;
  for (const ValueId input : inputs) inputSpecs.push_back(m_graph.value(input).spec);
  Result<OperationSpecs> specs = inferSpecs(*operation, attributes, inputSpecs);
  if (!specs) return specs.error();

  const auto nodeId = static_cast<NodeId>(m_graph.m_nodes.size());
  for (std::size_t slot = 0; slot < inputs.size(); ++slot)
    m_graph.m_values[static_cast<std::size_t>(inputs[slot])].uses.push_back({nodeId, static_cast<int>(slot)});

  Node node{.id = std::move(id), .owner = owner, .path = std::move(owner)};
  node.sequential = m_sequential;
  node.operation = std::move(operation);
  node.attributes = std::move(attributes);
  node.inputs = std::move(inputs);
  node.parameters = std::move(specs->parameters);
  node.parameterGradients = gradientSpecs(node);
  node.residuals = std::move(specs->residuals);
  node.needs = {.inputs = std::vector<bool>(node.inputs.size()),
                .parameters = std::vector<bool>(node.parameters.size())};
  for (std::size_t port = 0; port < specs->outputs.size(); ++port) {
    node.outputs.push_back(static_cast<ValueId>(m_graph.m_values.size()));
    m_graph.m_values.push_back({.name = node.id + "." + node.operation->outputs[port].name,
                                .spec = std::move(specs->outputs[port]),
                                .producer = nodeId,
                                .port = static_cast<int>(port)});
  }
  m_graph.m_nodes.push_back(std::move(node));
  return nodeId;
}

void GraphBuilder::setOrigin(NodeId node, std::string path, std::string block) {
  m_graph.m_nodes[static_cast<std::size_t>(node)].path = std::move(path);
  m_graph.m_nodes[static_cast<std::size_t>(node)].block = std::move(block);
}

void GraphBuilder::copyPlace(NodeId node, const Node& from) {
  setOrigin(node, from.path, from.block);
  m_graph.m_nodes[static_cast<std::size_t>(node)].sequential = from.sequential;
}

void GraphBuilder::markPartialGradients(NodeId node) {
  m_graph.m_nodes[static_cast<std::size_t>(node)].hasPartialGradients = true;
}

void GraphBuilder::markShardedParameters(NodeId node) {
  m_graph.m_nodes[static_cast<std::size_t>(node)].hasShardedParameters = true;
}

void GraphBuilder::markFrozenParameters(NodeId node) {
  m_graph.m_nodes[static_cast<std::size_t>(node)].hasFrozenParameters = true;
}

void GraphBuilder::enterSequential(std::string path, std::string block) {
  m_graph.m_sequentials.push_back({std::move(path), std::move(block), m_sequential});
  m_sequential = static_cast<int>(m_graph.m_sequentials.size()) - 1;
}

void GraphBuilder::leaveSequential() {
  m_sequential = m_graph.m_sequentials[static_cast<std::size_t>(m_sequential)].parent;
}

void GraphBuilder::addAlias(std::string name, ValueId value) { m_graph.m_aliases.emplace(std::move(name), value); }

void GraphBuilder::addOutput(std::string name, ValueId value) {
  m_graph.m_outputs.push_back({.name = std::move(name), .value = value});
  m_graph.m_values[static_cast<std::size_t>(value)].isOutput = true;
}

namespace {

std::vector<bool> trainedParameters(const Node& node) {
  std::vector<bool> trained;
  for (int slot = 0; slot < static_cast<int>(node.parameters.size()); ++slot)
    trained.push_back(isTrained(*node.operation, node.attributes, slot));
  return trained;
}

/// A gradient can exist if an input requests one or a trained parameter is upstream.
void markDifferentiable(std::vector<Value>& values, const Node& node) {
  const bool anyInput =
      std::ranges::any_of(node.inputs, [&](ValueId id) { return values[static_cast<std::size_t>(id)].needsGradient; });
  if (!anyInput && std::ranges::count(trainedParameters(node), true) == 0) return;
  for (const ValueId id : node.outputs) {
    Value& value = values[static_cast<std::size_t>(id)];
    value.needsGradient = isFloat(value.spec.dtype);
  }
}

/// Does any gradient arrive at the node's outputs?
bool isReached(const std::vector<Node>& nodes, const std::vector<Value>& values, const Node& node) {
  const auto receives = [&](ValueId id) {
    const Value& value = values[static_cast<std::size_t>(id)];
    return value.isOutput || std::ranges::any_of(value.uses, [&](const Use& use) {
             return nodes[static_cast<std::size_t>(use.node)].needs.inputs[static_cast<std::size_t>(use.slot)];
           });
  };
  return std::ranges::any_of(node.outputs, receives);
}

void decideNeeds(Node& node, const std::vector<Value>& values) {
  for (std::size_t slot = 0; slot < node.inputs.size(); ++slot)
    node.needs.inputs[slot] = values[static_cast<std::size_t>(node.inputs[slot])].needsGradient;
  node.needs.parameters = trainedParameters(node);
}

}  // namespace

Graph GraphBuilder::finish(ExecutionMode pass) && {
  m_graph.m_pass = pass;
  for (Node& node : m_graph.m_nodes)
    if (node.operation->settle)
      node.operation->settle(node.attributes, {.id = node.id, .isTraining = pass == ExecutionMode::Training});
  if (pass == ExecutionMode::Inference) return std::move(m_graph);

  for (std::size_t i = 0; i < m_graph.m_inputs.size(); ++i)
    m_graph.m_values[static_cast<std::size_t>(m_graph.m_inputs[i])].needsGradient = m_requiresGradient[i];
  for (const Node& node : m_graph.m_nodes) markDifferentiable(m_graph.m_values, node);
  for (std::size_t i = m_graph.m_nodes.size(); i-- > 0;) {
    Node& node = m_graph.m_nodes[i];
    if (isReached(m_graph.m_nodes, m_graph.m_values, node)) decideNeeds(node, m_graph.m_values);
    if (!node.takesPartInBackward()) continue;
    const std::vector<TensorSpec> inputSpecs = m_graph.inputSpecs(static_cast<NodeId>(i));
    node.context = node.operation->saveContext({node.attributes, inputSpecs, node.needs});
  }
  return std::move(m_graph);
}

std::string toString(const Graph& graph) {
  std::string text;
  for (const ValueId id : graph.inputs())
    text += fmt::format("input {} {}\n", graph.value(id).name, toString(graph.value(id).spec));
  for (const Node& node : graph.nodes()) text += toString(graph, node) + "\n";
  for (const GraphOutput& output : graph.outputs())
    text += fmt::format("output {} = {}\n", output.name, graph.value(output.value).name);
  return text;
}

}  // namespace fuseline
