// From the outputs of the model and the inputs of the pipeline back to tensors that ops make.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/import/kept_ends.h"

#include "core/support/base64.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace fuseline {

namespace {

class EndsKeeping {
 public:
  EndsKeeping(const FoundGraph& graph, const std::map<std::string, std::string>& outputIds, const KeptSource& source,
              const FoldedPlaces& places)
      : m_graph(graph), m_source(source), m_places(places) {
    for (const auto& [id, tensor] : outputIds) {
      m_outputIds.emplace(tensor, id);
      m_sourceIds.emplace(graph.reading.source(tensor), id);
    }
  }

  KeptEnds run() {
    KeptEnds found;
    addModelInputs(found.ends);
    const KeptEnds names = found;
    KeptRange range{.inputs = {}, .outputs = {}, .madeByOps = m_graph.made, .hasTypes = true};
    addCutInputs(found.ends, range);
    const std::vector<const ::onnx::ValueInfoProto*> made = addModelOutputs(found.ends, range);
    const auto isOfExternal = [](const ModelTensor& output) { return output.from.find('.') != std::string::npos; };
    if (range.outputs.empty() && std::ranges::none_of(found.ends.modelOutputs, isOfExternal)) return found;
    std::optional<KeptNodes> kept = keepNodes(m_graph.reading, m_source.opsets, range, m_graph.ports, m_source.folder);
    if (!kept) return names;
    found.ends.nodes = withOutputs(kept->text, made, range.outputs.size() - made.size());
    for (const std::string& tensor : kept->inputs) found.ends.inputs.push_back(nameOfInput(tensor));
    found.constants = std::move(kept->constants);
    return found;
  }

 private:
  bool isComputed(const std::string& tensor) const {
    return m_graph.reading.maker(tensor) && !m_graph.reading.constant(tensor);
  }

  /// Is there a Cast between the op that makes it and the output?
  bool isConverted(const std::string& output) const {
    return m_graph.reading.elementType(output) != m_graph.reading.elementType(m_graph.reading.source(output));
  }

  void addModelInputs(ModelEnds& ends) const {
    for (const auto& input : m_graph.reading.graph().input())
      if (const auto port = m_graph.ports.find(input.name()); port != m_graph.ports.end())
        ends.modelInputs.push_back({input.name(), port->second});
  }

  void addCutInputs(ModelEnds& ends, KeptRange& range) const {
    for (const auto& [tensor, port] : m_graph.ports) {
      if (m_graph.made.contains(tensor) || port.empty() || !isComputed(tensor)) continue;
      ends.outputs.push_back(port);
      range.outputs.push_back(tensor);
    }
  }

  /// Returns the declarations of those that the nodes make.
  std::vector<const ::onnx::ValueInfoProto*> addModelOutputs(ModelEnds& ends, KeptRange& range) const {
    std::vector<const ::onnx::ValueInfoProto*> made;
    for (const auto& output : m_graph.reading.graph().output()) {
      const std::string& source = m_graph.reading.source(output.name());
      const auto id = m_outputIds.find(output.name());
      if (id != m_outputIds.end() && !isConverted(output.name())) {
        ends.modelOutputs.push_back({output.name(), id->second});
      } else if (m_graph.made.contains(source) && !isConverted(output.name())) {
        ends.modelOutputs.push_back({output.name(), m_places.of(m_graph.ports.find(source)->second)});
      } else if (isComputed(output.name()) && std::ranges::find(range.outputs, output.name()) == range.outputs.end()) {
        ends.modelOutputs.push_back({output.name()});
        range.outputs.push_back(output.name());
        made.push_back(&output);
      }
    }
    return made;
  }

  /// A text without nodes is not empty either: it has a version.
  std::string withOutputs(const std::string& text, const std::vector<const ::onnx::ValueInfoProto*>& made,
                          std::size_t first) const {
    ::onnx::ModelProto model;
    model.ParseFromString(fromBase64(text).value_or(""));
    model.set_ir_version(kOnnxIrVersion);
    for (std::size_t i = 0; i < made.size(); ++i) {
      ::onnx::ValueInfoProto& output = *model.mutable_graph()->add_output();
      if (const auto* const type = m_graph.reading.type(made[i]->name()))
        *output.mutable_type()->mutable_tensor_type() = *type;
      else
        *output.mutable_type() = made[i]->type();
      output.set_name(keptOutputName(first + i));
    }
    return toBase64(model.SerializeAsString());
  }

  std::string nameOfInput(const std::string& tensor) const {
    if (const auto id = m_sourceIds.find(m_graph.reading.source(tensor)); id != m_sourceIds.end()) return id->second;
    return m_places.of(m_graph.ports.find(tensor)->second);
  }

  const FoundGraph& m_graph;
  const KeptSource& m_source;
  const FoldedPlaces& m_places;
  std::map<std::string, std::string> m_outputIds, m_sourceIds;  // by tensor
};

}  // namespace

KeptEnds keptEnds(const FoundGraph& graph, const std::map<std::string, std::string>& outputIds,
                  const KeptSource& source, const FoldedPlaces& places) {
  return EndsKeeping(graph, outputIds, source, places).run();
}

}  // namespace fuseline
