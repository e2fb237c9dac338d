// On a copy of the model, so that one that does not fit is left as it was.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/kept/model_ends_writing.h"

#include "core/export/onnx/kept/model_ends.h"
#include "core/export/onnx/name_list.h"
#include "core/export/onnx/onnx_node_order.h"
#include "core/ops/external.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

Error leftOut(std::string_view reason, std::string_view next) {
  return {
      fmt::format("The nodes of the imported model before and after the pipeline are left out: {} {}", reason, next)};
}

class EndsWriting {
 public:
  EndsWriting(const ModelEnds& ends, const Graph& graph, const OnnxGraph& onnx, const NamedTensors* tensors,
              OnnxModel& model)
      : m_ends(ends), m_graph(graph), m_onnx(onnx), m_tensors(tensors), m_model(model) {
    for (const auto& node : model.graph.node()) m_taken.insert(node.output().begin(), node.output().end());
    for (const auto& input : model.graph.input()) m_taken.insert(input.name());
    for (const auto& tensor : model.graph.initializer()) m_taken.insert(tensor.name());
  }

  Result<void> run() {
    if (m_ends.nodes.empty()) {
      renameAsInTheModel();
      return {};
    }
    const auto isMade = [](const ModelTensor& output) { return output.from.empty(); };
    const auto numMade = static_cast<std::size_t>(std::ranges::count_if(m_ends.modelOutputs, isMade));
    std::optional<::onnx::ModelProto> kept = keptModel(m_ends.nodes, m_ends.outputs.size() + numMade);
    if (!kept || kept->graph().output_size() != static_cast<int>(numMade))
      return leftOut("the pipeline file's section onnx was not written by an import.", "Import the model again.");
    if (Result<void> found = findPlaces(); !found) return found;
    const ::onnx::GraphProto ends = kept->graph();
    const std::vector<WrittenConstant> constants =
        writeKeptNodes(std::move(*kept), m_place, m_model.graph, m_model.opsets);
    if (Result<void> given = checkConstants(constants); !given) return given;
    m_model.constants.insert(m_model.constants.end(), constants.begin(), constants.end());
    leaveOutInputs();
    setOutputs(ends);
    renameAsInTheModel();
    sortNodes(m_model.graph);
    return {};
  }

 private:
  using Declared = std::pair<std::string, ::onnx::ValueInfoProto>;  // the output's id, and its tensor

  std::string unique(const std::string& wish) {
    std::string name = wish;
    for (int number = 2; !m_taken.insert(name).second; ++number) name = fmt::format("{}_{}", wish, number);
    return name;
  }

  /// id: of an output of the pipeline, or a port of an op.
  std::optional<ValueId> valueOf(const std::string& id) const {
    const auto output = std::ranges::find(m_graph.outputs(), id, &GraphOutput::name);
    if (output != m_graph.outputs().end()) return output->value;
    return isOfExternal(id) ? valueOfPort(id) : std::nullopt;
  }

  /// "fc.y" is the last "fc.….y" where the op consists of others.
  std::optional<ValueId> valueOfPort(const std::string& port) const {
    if (const ValueId value = m_graph.findValue(port); value >= 0) return value;
    const std::size_t dot = port.rfind('.');
    const std::string_view path = std::string_view(port).substr(0, dot + 1), name = std::string_view(port).substr(dot);
    std::optional<ValueId> last;
    for (ValueId value = 0; value < static_cast<ValueId>(m_graph.values().size()); ++value)
      if (const std::string& each = m_graph.value(value).name; each.starts_with(path) && each.ends_with(name))
        last = value;
    return last;
  }

  Result<void> findPlaces() {
    for (const std::string& id : m_ends.inputs) {
      const auto value = valueOf(id);
      if (!value)
        return leftOut(fmt::format("they read {}, which the pipeline no longer has.", id),
                       "Give an output this name, or import the model again.");
      m_place.inputs.push_back(m_onnx.nameOf(*value));
      m_place.inputTypes.push_back(onnxType(m_graph.value(*value).spec.dtype));
    }
    for (const std::string& id : m_ends.outputs) {
      const auto input =
          std::ranges::find_if(m_graph.inputs(), [&](ValueId each) { return m_graph.value(each).name == id; });
      const bool isThere = input != m_graph.inputs().end();
      m_place.outputs.push_back(isThere ? m_onnx.nameOf(*input) : unique(fmt::format("{}/{}", kModelEndsName, id)));
      m_place.outputTypes.push_back(isThere ? onnxType(m_graph.value(*input).spec.dtype) : 0);
      if (isThere) m_made.insert(m_place.outputs.back());
    }
    for (const ModelTensor& output : m_ends.modelOutputs) {
      if (!output.from.empty()) continue;
      m_place.outputs.push_back(unique(output.name));
      m_place.outputTypes.push_back(0);
    }
    return {};
  }

  Result<void> checkConstants(const std::vector<WrittenConstant>& constants) const {
    std::vector<std::string> missing;
    for (const WrittenConstant& constant : constants)
      if (!m_tensors ||
          std::ranges::find(*m_tensors, constant.name, &NamedTensors::value_type::first) == m_tensors->end())
        missing.push_back(constant.name);
    if (missing.empty()) return {};
    return leftOut(fmt::format("their constants {} are not given.", nameList(missing)),
                   "Export with --tensors and the file that `fuseline import MODEL --weights OUT.safetensors` writes.");
  }

  void leaveOutInputs() {
    auto& inputs = *m_model.graph.mutable_input();
    for (const auto& input : inputs)
      if (m_made.contains(input.name())) *m_model.graph.add_value_info() = input;
    inputs.erase(
        std::remove_if(inputs.begin(), inputs.end(), [&](const auto& input) { return m_made.contains(input.name()); }),
        inputs.end());
  }

  /// Those of the model in its order, then those that somebody added to the pipeline.
  void setOutputs(const ::onnx::GraphProto& ends) {
    std::vector<Declared> declared = takeOutputs();
    int numMade = 0;
    for (const ModelTensor& output : m_ends.modelOutputs) {
      if (output.from.empty()) {
        addOutput(ends.output(numMade), m_place.outputs[m_ends.outputs.size() + static_cast<std::size_t>(numMade)]);
        ++numMade;
      } else if (const auto known = std::ranges::find(declared, output.from, &Declared::first);
                 known != declared.end()) {
        *m_model.graph.add_output() = known->second;
        declared.erase(known);
      } else if (const auto value = isOfExternal(output.from) ? valueOf(output.from) : std::nullopt) {
        addExternal(*value, unique(output.name));
      }
    }
    for (auto& [id, info] : declared) {
      const bool isCut = std::ranges::find(m_ends.inputs, id) != m_ends.inputs.end();
      *(isCut ? m_model.graph.add_value_info() : m_model.graph.add_output()) = std::move(info);
    }
  }

  /// An output of the model that a Cast makes has the name, not the output of the pipeline that it converts.
  void giveWayToMade(std::map<std::string, std::string>& names) {
    std::size_t place = m_ends.outputs.size();
    for (const ModelTensor& output : m_ends.modelOutputs) {
      if (!output.from.empty()) continue;
      const std::string& made = m_place.outputs[place++];
      const auto isTaker = [&](const std::string& id) {
        const auto value = valueOf(id);
        return value && m_onnx.nameOf(*value) == output.name;
      };
      if (made == output.name || std::ranges::none_of(m_ends.inputs, isTaker)) continue;
      names.emplace(output.name, unique(fmt::format("{}/{}", kModelEndsName, output.name)));
      names.emplace(made, output.name);
    }
  }

  /// Ids are not always the names that the model has, as those have any characters.
  void renameAsInTheModel() {
    std::map<std::string, std::string> names;
    if (!m_ends.nodes.empty()) giveWayToMade(names);
    for (const ModelTensor& input : m_ends.modelInputs)
      for (const ValueId value : m_graph.inputs())
        if (m_graph.value(value).name == input.from) addName(names, m_onnx.nameOf(value), input.name);
    for (const ModelTensor& output : m_ends.modelOutputs)
      if (const auto value = output.from.empty() ? std::nullopt : valueOf(output.from);
          value && !isOfExternal(output.from))
        addName(names, m_onnx.nameOf(*value), output.name);
    if (!names.empty()) renameTensors(m_model.graph, names);
  }

  void addName(std::map<std::string, std::string>& names, const std::string& now, const std::string& wanted) {
    if (now != wanted && m_taken.insert(wanted).second) names.emplace(now, wanted);
  }

  /// By the ids of the pipeline's outputs, in the order in which OnnxGraph adds them.
  std::vector<Declared> takeOutputs() {
    std::vector<Declared> outputs;
    int index = 0;
    for (const GraphOutput& output : m_graph.outputs())
      if (!isOfExternal(output.name)) outputs.emplace_back(output.name, m_model.graph.output(index++));
    m_model.graph.clear_output();
    return outputs;
  }

  void addOutput(const ::onnx::ValueInfoProto& like, const std::string& name) {
    ::onnx::ValueInfoProto& info = *m_model.graph.add_output();
    info = like;
    info.set_name(name);
  }

  void addExternal(ValueId value, const std::string& name) {
    ::onnx::NodeProto& node = *m_model.graph.add_node();
    node.set_op_type("Identity");
    node.set_name(name);
    node.add_input(m_onnx.nameOf(value));
    node.add_output(name);
    ::onnx::ValueInfoProto& info = *m_model.graph.add_output();
    info.set_name(name);
    setType(info, m_graph.value(value).spec);
  }

  const ModelEnds& m_ends;
  const Graph& m_graph;
  const OnnxGraph& m_onnx;
  const NamedTensors* m_tensors;
  OnnxModel& m_model;
  KeptPlace m_place{.id = kModelEndsName, .inputs = {}, .outputs = {}};
  std::set<std::string> m_taken;
  std::set<std::string> m_made;  // tensors that were inputs of the model and are made by the nodes
};

/// The extents of a constant are numbers; wherever else its symbols are, they are the same numbers.
void withoutSymbolsOf(const ::onnx::ValueInfoProto& constant, const Shape& shape, ::onnx::GraphProto& graph) {
  std::map<std::string, std::int64_t> numbers;
  const auto& declared = constant.type().tensor_type().shape();
  for (int axis = 0; axis < declared.dim_size() && axis < static_cast<int>(shape.size()); ++axis)
    if (declared.dim(axis).has_dim_param())
      numbers.emplace(declared.dim(axis).dim_param(), shape[static_cast<std::size_t>(axis)]);
  for (auto* const infos : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()})
    for (auto& info : *infos)
      for (auto& extent : *info.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim())
        if (const auto number = numbers.find(extent.dim_param()); extent.has_dim_param() && number != numbers.end())
          extent.set_dim_value(number->second);
}

}  // namespace

void addModelEnds(const ExportedPipeline& pipeline, const Graph& graph, const OnnxGraph& onnx, OnnxModel& model) {
  const std::optional<ModelEnds> ends = modelEnds(pipeline.document);
  if (!ends) return;
  OnnxModel whole = model;
  if (Result<void> written = EndsWriting(*ends, graph, onnx, pipeline.tensors.get(), whole).run(); written)
    model = std::move(whole);
  else
    model.notes.push_back(written.error().message);
}

void fillModelConstants(const ExportedPipeline& pipeline, OnnxModel& model) {
  const std::optional<ModelEnds> ends = pipeline.tensors ? modelEnds(pipeline.document) : std::nullopt;
  if (!ends) return;
  for (const std::string& id : ends->constants) {
    const auto given = std::ranges::find(*pipeline.tensors, id, &NamedTensors::value_type::first);
    auto& inputs = *model.graph.mutable_input();
    const auto input = std::ranges::find(inputs, id, &::onnx::ValueInfoProto::name);
    if (given == pipeline.tensors->end() || input == inputs.end()) continue;
    withoutSymbolsOf(*input, given->second.spec.shape, model.graph);
    ::onnx::TensorProto& tensor = *model.graph.add_initializer();
    tensor.set_name(id);
    tensor.set_data_type(onnxType(given->second.spec.dtype));
    for (const std::int64_t extent : given->second.spec.shape) tensor.add_dims(extent);
    tensor.set_raw_data(given->second.data.data(), given->second.data.size());
    inputs.erase(input);
  }
}

}  // namespace fuseline
