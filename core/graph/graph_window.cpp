// Cuts windows out of a graph, and compares graphs node by node.
// SPDX-License-Identifier: Apache-2.0
#include "core/graph/graph_window.h"

#include "core/ops/catalog.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace fuseline {

namespace {

class Window {
 public:
  Window(const Graph& graph, const std::map<NodeId, Attributes>& attributes)
      : m_graph(graph), m_attributes(attributes), m_values(graph.values().size(), -1) {}

  std::optional<Graph> of(const std::vector<NodeId>& nodes) && {
    m_builder.copySequentials(m_graph);
    std::vector<LinearQuantizers> quantizers;
    for (const NodeId id : nodes) {
      if (!addNode(id)) return std::nullopt;
      quantizers.push_back(m_graph.node(id).quantizers);
    }
    for (const NodeId id : nodes)
      for (const ValueId output : m_graph.node(id).outputs) addIfReadOutside(output, nodes);
    return std::move(m_builder).finish(m_graph.pass()).withQuantizers(std::move(quantizers), m_graph.delayedScaling());
  }

 private:
  ValueId mapped(ValueId id) {
    ValueId& own = m_values[static_cast<std::size_t>(id)];
    const Value& value = m_graph.value(id);
    if (own < 0) own = m_builder.addInput(value.name, value.spec, value.needsGradient);
    return own;
  }

  bool addNode(NodeId of) {
    const Node& node = m_graph.node(of);
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(mapped(input));
    const auto other = m_attributes.find(of);
    const FusibleOperation* const operation =
        other == m_attributes.end() ? nullptr : builtinOperations().find(node.operation->name);
    const Result<NodeId> id =
        operation ? m_builder.addNode(node.id, node.owner, *operation, other->second, std::move(inputs))
                  : m_builder.addNode(node.id, node.owner, node.operation, node.attributes, std::move(inputs));
    if (!id) return false;
    m_builder.copyPlace(*id, node);
    if (node.hasPartialGradients) m_builder.markPartialGradients(*id);
    if (node.hasShardedParameters) m_builder.markShardedParameters(*id);
    if (node.hasFrozenParameters) m_builder.markFrozenParameters(*id);
    const std::vector<ValueId>& made = m_builder.partial().node(*id).outputs;
    for (std::size_t port = 0; port < made.size(); ++port)
      m_values[static_cast<std::size_t>(node.outputs[port])] = made[port];
    return true;
  }

  void addIfReadOutside(ValueId id, const std::vector<NodeId>& nodes) {
    const Value& value = m_graph.value(id);
    const auto isOutside = [&](const Use& use) { return !std::ranges::binary_search(nodes, use.node); };
    if (value.isOutput || std::ranges::any_of(value.uses, isOutside)) m_builder.addOutput(value.name, mapped(id));
  }

  const Graph& m_graph;
  const std::map<NodeId, Attributes>& m_attributes;
  std::vector<ValueId> m_values;  // of the window, by value of the graph; -1: not there
  GraphBuilder m_builder;
};

bool isSame(const GradientNeeds& a, const GradientNeeds& b) {
  return a.inputs == b.inputs && a.parameters == b.parameters;
}

bool isSame(const OperationContext& a, const OperationContext& b) {
  return a.tensors == b.tensors && a.state == b.state;
}

bool isSameButForAttributes(const Node& a, const Node& b) {
  return a.id == b.id && a.owner == b.owner && a.path == b.path && a.block == b.block && a.sequential == b.sequential &&
         a.operation->name == b.operation->name && a.inputs == b.inputs && a.outputs == b.outputs &&
         a.parameters == b.parameters && a.parameterGradients == b.parameterGradients && a.residuals == b.residuals &&
         isSame(a.needs, b.needs) && isSame(a.context, b.context) && a.quantizers == b.quantizers &&
         a.hasPartialGradients == b.hasPartialGradients && a.hasShardedParameters == b.hasShardedParameters &&
         a.hasFrozenParameters == b.hasFrozenParameters;
}

/// Its consumers follow from the nodes.
bool isSame(const Value& a, const Value& b) {
  return a.name == b.name && a.spec == b.spec && a.producer == b.producer && a.port == b.port &&
         a.isOutput == b.isOutput && a.needsGradient == b.needsGradient;
}

bool isSame(const GraphOutput& a, const GraphOutput& b) { return a.name == b.name && a.value == b.value; }

bool isSame(const Sequential& a, const Sequential& b) {
  return a.path == b.path && a.block == b.block && a.parent == b.parent;
}

template <class Item>
bool areSame(const std::vector<Item>& a, const std::vector<Item>& b) {
  return std::ranges::equal(a, b, [](const Item& one, const Item& other) { return isSame(one, other); });
}

}  // namespace

std::vector<NodeId> nodesAround(const Graph& graph, const std::vector<NodeId>& from, int hops) {
  std::vector<bool> isFound(graph.nodes().size(), false);
  std::vector<NodeId> found;
  const auto add = [&](NodeId id) {
    if (id < 0 || isFound[static_cast<std::size_t>(id)]) return;
    isFound[static_cast<std::size_t>(id)] = true;
    found.push_back(id);
  };
  std::ranges::for_each(from, add);
  std::size_t begin = 0;
  for (; hops > 0; --hops)
    for (const std::size_t end = found.size(); begin < end; ++begin) {
      const Node& node = graph.node(found[begin]);
      for (const ValueId input : node.inputs) {
        add(graph.value(input).producer);
        for (const Use& use : graph.value(input).uses) add(use.node);
      }
      for (const ValueId output : node.outputs)
        for (const Use& use : graph.value(output).uses) add(use.node);
    }
  std::ranges::sort(found);
  return found;
}

Graph windowOf(const Graph& graph, const std::vector<NodeId>& nodes) {
  std::optional<Graph> window = windowOf(graph, nodes, {});
  assert(window);  // its specs were inferred before
  return std::move(*window);
}

std::optional<Graph> windowOf(const Graph& graph, const std::vector<NodeId>& nodes,
                              const std::map<NodeId, Attributes>& attributes) {
  return Window(graph, attributes).of(nodes);
}

Graph withAttributes(Graph graph, NodeId id, Attributes attributes, OperationPointer operation) {
  Node& node = const_cast<Node&>(graph.node(id));  // of this copy
  node.attributes = std::move(attributes);
  node.operation = std::move(operation);
  return graph;
}

std::optional<std::vector<NodeId>> changedAttributes(const Graph& before, const Graph& after) {
  const bool isSameFrame = before.pass() == after.pass() && before.inputs() == after.inputs() &&
                           before.delayedScaling() == after.delayedScaling() &&
                           before.optimizer() == after.optimizer() &&
                           areSame(before.sequentials(), after.sequentials()) &&
                           areSame(before.outputs(), after.outputs()) && areSame(before.values(), after.values()) &&
                           std::ranges::equal(before.nodes(), after.nodes(), isSameButForAttributes);
  if (!isSameFrame) return std::nullopt;
  std::vector<NodeId> changed;
  for (NodeId id = 0; id < static_cast<NodeId>(after.nodes().size()); ++id)
    if (before.node(id).attributes != after.node(id).attributes) changed.push_back(id);
  return changed;
}

}  // namespace fuseline
