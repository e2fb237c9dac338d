// Indexes tensors by name and the ops of composites by path.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/port_values.h"

namespace fuseline {

const Value& summedOverRanks(const Graph& graph, const Value& value) {
  if (value.producer < 0) return value;
  const Node& producer = graph.node(value.producer);
  for (const Use& use : value.uses) {
    const Node& reader = graph.node(use.node);
    const bool isPart = reader.operation->communication && reader.path == producer.path;
    if (isPart && reader.id.starts_with(producer.id + '.')) return graph.value(reader.outputs.front());
  }
  return value;
}

PortValues::PortValues(const Graph& graph) : PortValues(graph, graph) {}

PortValues::PortValues(const Graph& graph, const Graph& whole) : m_graph(graph), m_whole(whole) {
  m_byName.reserve(graph.values().size());
  m_lastAt.reserve(graph.nodes().size());
  for (const Value& value : graph.values()) m_byName.try_emplace(value.name, &value);
  for (const Node& node : graph.nodes()) m_lastAt.insert_or_assign(node.path, &node);
}

const Value* PortValues::at(const Endpoint& endpoint) const {
  if (endpoint.node.empty()) return nullptr;
  const std::string name = toString(endpoint);
  if (const auto found = m_byName.find(name); found != m_byName.end()) return &summedOverRanks(m_graph, *found->second);
  if (const auto last = m_lastAt.find(endpoint.node); last != m_lastAt.end()) {
    const int port = last->second->operation->outputIndex(endpoint.port);
    return port < 0 ? nullptr : &m_graph.value(last->second->outputs[static_cast<std::size_t>(port)]);
  }
  const ValueId ofInstance = m_whole.findValue(name);  // a port of an instance, or of an op that is bypassed
  if (ofInstance < 0) return nullptr;
  const auto local = m_byName.find(m_whole.value(ofInstance).name);
  return local == m_byName.end() ? nullptr : &summedOverRanks(m_graph, *local->second);
}

}  // namespace fuseline
