// Indexes tensors by name and the ops of composites by path.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/port_values.h"

namespace fuseline {

PortValues::PortValues(const Graph& graph) : m_graph(graph) {
  m_byName.reserve(graph.values().size());
  m_lastAt.reserve(graph.nodes().size());
  for (const Value& value : graph.values()) m_byName.try_emplace(value.name, &value);
  for (const Node& node : graph.nodes()) m_lastAt.insert_or_assign(node.path, &node);
}

const Value* PortValues::at(const Endpoint& endpoint) const {
  if (endpoint.node.empty()) return nullptr;
  const std::string name = toString(endpoint);
  if (const auto found = m_byName.find(name); found != m_byName.end()) return found->second;
  if (const auto last = m_lastAt.find(endpoint.node); last != m_lastAt.end()) {
    const int port = last->second->operation->outputIndex(endpoint.port);
    return port < 0 ? nullptr : &m_graph.value(last->second->outputs[static_cast<std::size_t>(port)]);
  }
  const ValueId ofInstance = m_graph.findValue(name);  // a port of an instance, or of an op that is bypassed
  return ofInstance < 0 ? nullptr : &m_graph.value(ofInstance);
}

}  // namespace fuseline
