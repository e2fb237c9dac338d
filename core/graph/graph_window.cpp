// Cuts windows out of a graph.
// SPDX-License-Identifier: Apache-2.0
#include "core/graph/graph_window.h"

#include "core/ops/catalog.h"

#include <algorithm>
#include <cassert>
#include <ranges>
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

}  // namespace

std::vector<NodeId> nodesAround(const Graph& graph, const std::vector<NodeId>& from, int hops, int mostReaders) {
  std::vector<bool> isFound(graph.nodes().size(), false);
  std::vector<NodeId> found;
  const auto add = [&](NodeId id) {
    if (id < 0 || isFound[static_cast<std::size_t>(id)]) return;
    isFound[static_cast<std::size_t>(id)] = true;
    found.push_back(id);
  };
  const auto addReaders = [&](const Value& value) {
    for (const Use& use : value.uses | std::views::take(mostReaders)) add(use.node);
  };
  std::ranges::for_each(from, add);
  std::size_t begin = 0;
  for (; hops > 0; --hops)
    for (const std::size_t end = found.size(); begin < end; ++begin) {
      const Node& node = graph.node(found[begin]);
      for (const ValueId input : node.inputs) {
        add(graph.value(input).producer);
        addReaders(graph.value(input));
      }
      for (const ValueId output : node.outputs) addReaders(graph.value(output));
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

}  // namespace fuseline
