// Walks upstream from each op and output to the tensors of the pipeline, because a search skips conversions.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/import/lost_casts.h"

#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>

namespace fuseline {

namespace {

class CastSearch {
 public:
  explicit CastSearch(const FoundGraph& graph) : m_graph(graph) {
    for (const auto& node : graph.reading.graph().node())
      for (const std::string& output : node.output()) m_makers.emplace(output, &node);
  }

  /// Dtypes to which the model rounds between the tensors of the pipeline and this one.
  std::set<DType> roundedTo(const std::string& tensor) {
    m_seen.clear();
    m_found.clear();
    m_wanted.clear();
    want(tensor);
    while (!m_wanted.empty()) {
      const std::string* const next = m_wanted.back();
      m_wanted.pop_back();
      if (!m_graph.ports.contains(*next)) want(*next);
    }
    return m_found;
  }

 private:
  /// Continues with the inputs of its producer.
  void want(const std::string& tensor) {
    const auto made = m_makers.find(tensor);
    if (made == m_makers.end() || !m_seen.insert(made->second).second) return;
    const ::onnx::NodeProto& node = *made->second;
    if (const auto dtype = roundedBy(node)) m_found.insert(*dtype);
    for (const std::string& input : node.input()) m_wanted.push_back(&input);
  }

  std::optional<DType> roundedBy(const ::onnx::NodeProto& node) const {
    if (node.op_type() != "Cast" || node.input_size() == 0) return std::nullopt;
    const auto from = floatTypeOf(m_graph.reading.elementType(node.input(0)));
    const auto to = floatTypeOf(static_cast<std::int32_t>(integerOf(node, "to", 0)));
    return from && to && from != to && to != DType::F32 ? to : std::nullopt;
  }

  const FoundGraph& m_graph;
  std::map<std::string_view, const ::onnx::NodeProto*> m_makers;
  std::set<const ::onnx::NodeProto*> m_seen;
  std::set<DType> m_found;
  std::vector<const std::string*> m_wanted;
};

/// Dtypes of the tensors that the nodes of each op consume or produce.
std::map<std::string, std::set<DType>> dtypesByOp(const Graph& pipeline) {
  std::map<std::string, std::set<DType>> dtypes;
  for (const Node& node : pipeline.nodes()) {
    std::set<DType>& own = dtypes[node.owner];
    for (const ValueId input : node.inputs) own.insert(pipeline.value(input).spec.dtype);
    for (const ValueId output : node.outputs) own.insert(pipeline.value(output).spec.dtype);
    for (const TensorSpec& parameter : node.parameters) own.insert(parameter.dtype);
  }
  return dtypes;
}

}  // namespace

std::map<std::string, std::vector<std::string>> lostCasts(const FoundGraph& graph,
                                                          const std::map<std::string, std::string>& outputs,
                                                          const Graph& pipeline) {
  std::map<std::string, std::set<DType>> dtypes = dtypesByOp(pipeline);
  for (const GraphOutput& output : pipeline.outputs())
    dtypes[output.name].insert(pipeline.value(output.value).spec.dtype);
  std::map<std::string, std::vector<std::string>> notes;
  CastSearch search(graph);
  const auto add = [&](const std::string& id, const std::string& tensor) {
    for (const DType dtype : search.roundedTo(tensor))
      if (!dtypes[id].contains(dtype))
        notes[fmt::format("the model rounds to {} here, and the pipeline does not: results differ slightly.",
                          dtypeName(dtype))]
            .push_back(id);
  };
  // An External keeps its nodes, and a MakeExtraOutput has none.
  for (const ImportedOperation& each : graph.operations)
    if (each.found.operation != "External" && each.found.operation != "MakeExtraOutput") add(each.id, each.tensor);
  for (const auto& [id, tensor] : outputs)
    if (graph.reading.source(tensor) != tensor) add(id, tensor);
  return notes;
}

}  // namespace fuseline
