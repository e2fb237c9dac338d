// Rebuilds a graph, node by node.
// SPDX-License-Identifier: Apache-2.0
#include "core/graph/retype.h"

#include <utility>

namespace fuseline {

namespace {

constexpr const char* kDTypeAttribute = "dtype";

class Retyper {
 public:
  Retyper(const Graph& graph, DType dtype) : m_graph(graph), m_dtype(dtype), m_values(graph.values().size(), -1) {}

  Result<Graph> make() {
    for (const ValueId id : m_graph.inputs()) addInput(id);
    for (const Node& node : m_graph.nodes())
      if (Result<void> added = addNode(node); !added) return added.error();
    for (const GraphOutput& output : m_graph.outputs()) m_builder.addOutput(output.name, mapped(output.value));
    return std::move(m_builder).finish(m_graph.pass());
  }

 private:
  ValueId& mapped(ValueId id) { return m_values[static_cast<std::size_t>(id)]; }

  void addInput(ValueId id) {
    const Value& value = m_graph.value(id);
    TensorSpec spec = value.spec;
    if (isFloat(spec.dtype)) spec.dtype = m_dtype;
    mapped(id) = m_builder.addInput(value.name, std::move(spec), value.needsGradient);
  }

  Result<void> addNode(const Node& node) {
    Attributes attributes = node.attributes;
    if (attributes.has(kDTypeAttribute)) attributes.set(kDTypeAttribute, std::string(dtypeName(m_dtype)));
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(mapped(input));
    const Result<NodeId> id =
        m_builder.addNode(node.id, node.owner, node.operation, std::move(attributes), std::move(inputs));
    if (!id) return id.error();
    m_builder.setOrigin(*id, node.path, node.block);
    const std::vector<ValueId>& made = m_builder.partial().node(*id).outputs;
    for (std::size_t port = 0; port < made.size(); ++port) mapped(node.outputs[port]) = made[port];
    return {};
  }

  const Graph& m_graph;
  DType m_dtype;
  std::vector<ValueId> m_values;
  GraphBuilder m_builder;
};

}  // namespace

Result<Graph> inDType(const Graph& graph, DType dtype) { return Retyper(graph, dtype).make(); }

}  // namespace fuseline
