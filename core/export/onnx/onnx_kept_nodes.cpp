// Names become those of the place, and forms of old opsets those of opset 20.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_kept_nodes.h"

#include "core/support/base64.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// Maximum number of elements of a constant in the text.
constexpr std::int64_t kLargestInText = 64;

/// Prefix of the names within a text, except for those of the model's inputs.
constexpr char kInner = ':';

std::string numbered(const char* name, std::size_t index) {
  return index == 0 ? fmt::format("{}{}", kInner, name) : fmt::format("{}{}{}", kInner, name, index + 1);
}

bool isStandard(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

// ---- taken out

class NodeKeeper {
 public:
  NodeKeeper(const OnnxReading& reading, const KeptInputs& ids, const std::filesystem::path& folder)
      : m_reading(reading), m_ids(ids), m_folder(folder) {
    const ::onnx::GraphProto& graph = reading.graph();
    for (int i = 0; i < graph.node_size(); ++i)
      for (const std::string& output : graph.node(i).output()) m_makers.emplace(output, i);
    for (const auto& tensor : graph.initializer()) m_constants.emplace(tensor.name(), &tensor);
    for (const auto& input : graph.input()) m_inputs.emplace(input.name(), &input);
  }

  std::optional<KeptNodes> run(const OnnxOpsets& opsets, const std::vector<std::string>& inputs,
                               const std::vector<std::string>& outputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) m_names.emplace(inputs[i], numbered("x", i));
    for (std::size_t i = 0; i < outputs.size(); ++i) m_names.emplace(outputs[i], numbered("y", i));
    if (!find(outputs, {inputs.begin(), inputs.end()})) return std::nullopt;
    ::onnx::ModelProto model;
    ::onnx::GraphProto& graph = *model.mutable_graph();
    for (const int position : m_positions)
      if (!write(m_reading.graph().node(position), *graph.add_node(), graph)) return std::nullopt;
    if (m_reading.isMixed()) noteTypes(inputs, outputs, graph);
    for (const auto& opset : opsets)
      if (isUsed(opset.domain())) *model.add_opset_import() = opset;
    return KeptNodes{toBase64(model.SerializeAsString()), std::move(m_kept)};
  }

 private:
  /// Searches from the outputs back to the given tensors, so that equal layers are found in the same order, independent
  /// of the order of their nodes in the model. No node that computes a given tensor is included.
  bool find(const std::vector<std::string>& outputs, const std::set<std::string>& given) {
    struct Visit {
      int position;
      int nextInput = 0;
    };
    for (const std::string& output : outputs) {
      std::vector<Visit> visits;
      if (!enter(output, {}, visits)) return false;
      while (!visits.empty()) {
        Visit& visit = visits.back();
        const ::onnx::NodeProto& node = m_reading.graph().node(visit.position);
        if (visit.nextInput < node.input_size()) {
          const std::string& input = node.input(visit.nextInput++);
          if (!enter(input, given, visits)) return false;
          continue;
        }
        m_positions.push_back(visit.position);
        visits.pop_back();
      }
    }
    return true;
  }

  /// Begins with the producer of a tensor, unless it is known. False: the tensor has no producer.
  template <class Visits>
  bool enter(const std::string& tensor, const std::set<std::string>& given, Visits& visits) {
    if (tensor.empty() || given.contains(tensor) || m_constants.contains(tensor)) return true;
    const auto maker = m_makers.find(tensor);
    if (maker == m_makers.end()) return m_inputs.contains(tensor);
    if (m_entered.insert(maker->second).second) visits.push_back({maker->second});
    return true;
  }

  /// The pipeline may have these in another type.
  void noteTypes(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                 ::onnx::GraphProto& graph) const {
    for (const auto* const tensors : {&inputs, &outputs})
      for (const std::string& tensor : *tensors) {
        ::onnx::ValueInfoProto& info = *graph.add_value_info();
        info.set_name(m_names.at(tensor));
        info.mutable_type()->mutable_tensor_type()->set_elem_type(m_reading.elementType(tensor));
      }
  }

  bool isUsed(const std::string& domain) const {
    return std::ranges::any_of(m_positions, [&](int position) {
      const std::string& used = m_reading.graph().node(position).domain();
      return used == domain || (isStandard(used) && isStandard(domain));
    });
  }

  bool write(const ::onnx::NodeProto& node, ::onnx::NodeProto& kept, ::onnx::GraphProto& graph) {
    kept.set_op_type(node.op_type());
    if (!isStandard(node.domain())) kept.set_domain(node.domain());
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g() || attribute.graphs_size() > 0) return false;
      *kept.add_attribute() = attribute;
      kept.mutable_attribute(kept.attribute_size() - 1)->clear_doc_string();
    }
    for (const std::string& input : node.input()) {
      const std::optional<std::string> name = read(input, graph);
      if (!name) return false;
      kept.add_input(*name);
    }
    for (const std::string& output : node.output()) kept.add_output(output.empty() ? "" : made(output));
    return true;
  }

  const std::string& made(const std::string& tensor) {
    return m_names.try_emplace(tensor, fmt::format("{}t{}", kInner, m_names.size())).first->second;
  }

  std::optional<std::string> read(const std::string& tensor, ::onnx::GraphProto& graph) {
    if (tensor.empty()) return "";
    if (const auto known = m_names.find(tensor); known != m_names.end()) return known->second;
    if (const auto constant = m_constants.find(tensor); constant != m_constants.end())
      return keep(tensor, *constant->second, graph);
    const auto input = m_inputs.find(tensor);
    if (input == m_inputs.end()) return made(tensor);
    const auto id = m_ids.find(tensor);
    const std::string name = id == m_ids.end() ? tensor : id->second;
    if (name.starts_with(kInner)) return std::nullopt;
    ::onnx::ValueInfoProto& info = *graph.add_input();
    info = *input->second;
    info.clear_doc_string();
    info.set_name(name);
    m_names.emplace(tensor, name);
    return name;
  }

  std::optional<std::string> keep(const std::string& name, const ::onnx::TensorProto& constant,
                                  ::onnx::GraphProto& graph) {
    const std::string called = fmt::format("constant{}", ++m_numConstants);
    const std::string kept = kInner + called;
    ::onnx::TensorProto& tensor = *graph.add_initializer();
    tensor.set_name(kept);
    tensor.set_data_type(constant.data_type());
    *tensor.mutable_dims() = constant.dims();
    m_names.emplace(name, kept);
    if (numElements(shapeOf(constant)) > kLargestInText) {
      m_kept.push_back({called, &constant});
      return kept;
    }
    const Result<Tensor> elements = keptTensor({called, &constant}, m_folder);
    if (!elements) return std::nullopt;
    tensor.set_raw_data(elements->data.data(), elements->data.size());
    return kept;
  }

  const OnnxReading& m_reading;
  const KeptInputs& m_ids;
  const std::filesystem::path& m_folder;
  std::map<std::string, int> m_makers;
  std::map<std::string, const ::onnx::TensorProto*> m_constants;
  std::map<std::string, const ::onnx::ValueInfoProto*> m_inputs;
  std::map<std::string, std::string> m_names;  // in the text, by those of the model
  std::vector<int> m_positions;                // of nodes, in an order in which they can run
  std::set<int> m_entered;
  std::vector<KeptConstant> m_kept;
  int m_numConstants = 0;
};

// ---- forms of old opsets. Source: the change log of the ONNX operator specifications.

const ::onnx::AttributeProto* attributeOf(const ::onnx::NodeProto& node, std::string_view name) {
  return findAttribute(node, name);
}

void removeAttribute(::onnx::NodeProto& node, std::string_view name) {
  auto& attributes = *node.mutable_attribute();
  attributes.erase(
      std::remove_if(attributes.begin(), attributes.end(), [&](const auto& each) { return each.name() == name; }),
      attributes.end());
}

void setAttribute(::onnx::NodeProto& node, const char* name, std::int64_t value) {
  ::onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(::onnx::AttributeProto::INT);
  attribute.set_i(value);
}

class Modernizer {
 public:
  Modernizer(::onnx::GraphProto& graph, std::int64_t opset) : m_graph(graph), m_opset(opset) {}

  void run(::onnx::NodeProto& node) {
    const std::string& type = node.op_type();
    if (!isStandard(node.domain())) return;
    const bool isReduction = type.starts_with("Reduce");
    const bool hadAxes = type == "ReduceSum" || type == "Squeeze" || type == "Unsqueeze" ? m_opset < 13 : m_opset < 18;
    if ((isReduction || type == "Squeeze" || type == "Unsqueeze") && hadAxes) toInput(node, "axes", 1);
    if (type == "Split") split(node);
    if (type == "Clip" && m_opset < 11) limits(node);
    if (type == "Pad" && m_opset < 11) toInput(node, "pads", 1);
    if (type == "Softmax" || type == "LogSoftmax") softmax(node);
    if (type == "Dropout" && m_opset < 12) removeAttribute(node, "ratio");
    if (type == "Slice" && m_opset < 10) slice(node);
  }

 private:
  std::string constant(std::int32_t type, const ::onnx::AttributeProto& attribute) {
    ::onnx::TensorProto& tensor = *m_graph.add_initializer();
    tensor.set_name(fmt::format("form{}", m_graph.initializer_size()));
    tensor.set_data_type(type);
    if (type == ::onnx::TensorProto::INT64) {
      tensor.add_dims(attribute.ints_size());
      for (const std::int64_t value : attribute.ints()) tensor.add_int64_data(value);
    } else {
      tensor.add_float_data(attribute.f());
    }
    return tensor.name();
  }

  void toInput(::onnx::NodeProto& node, const char* name, int index) {
    const auto* const attribute = attributeOf(node, name);
    if (!attribute) return;
    const std::int32_t type =
        attribute->type() == ::onnx::AttributeProto::FLOAT ? ::onnx::TensorProto::FLOAT : ::onnx::TensorProto::INT64;
    const std::string input = constant(type, *attribute);
    while (node.input_size() <= index) node.add_input("");
    node.set_input(index, input);
    removeAttribute(node, name);
  }

  /// Without sizes the parts are equal, which is said since opset 18.
  void split(::onnx::NodeProto& node) {
    if (m_opset < 13) toInput(node, "split", 1);
    if (m_opset < 18 && inputOf(node, 1).empty() && !attributeOf(node, "num_outputs"))
      setAttribute(node, "num_outputs", node.output_size());
  }

  void limits(::onnx::NodeProto& node) {
    toInput(node, "min", 1);
    toInput(node, "max", 2);
  }

  void slice(::onnx::NodeProto& node) {
    toInput(node, "starts", 1);
    toInput(node, "ends", 2);
    toInput(node, "axes", 3);
  }

  /// Before opset 13 all axes from this one on were one; for the last axis that is the same.
  void softmax(::onnx::NodeProto& node) const {
    if (m_opset < 13 && !attributeOf(node, "axis")) setAttribute(node, "axis", 1);
  }

  ::onnx::GraphProto& m_graph;
  std::int64_t m_opset;
};

std::int64_t standardVersion(const OnnxOpsets& opsets) {
  for (const auto& opset : opsets)
    if (isStandard(opset.domain())) return opset.version();
  return kOnnxOpset;
}

/// The newest of each domain.
void merge(const OnnxOpsets& others, OnnxOpsets& opsets) {
  for (const auto& other : others) {
    const auto known = std::ranges::find_if(opsets, [&](const auto& each) {
      return each.domain() == other.domain() || (isStandard(each.domain()) && isStandard(other.domain()));
    });
    if (known == opsets.end())
      *opsets.Add() = other;
    else
      known->set_version(std::max(known->version(), other.version()));
  }
}

// ---- written again

class KeptWriting {
 public:
  KeptWriting(const KeptPlace& place, ::onnx::GraphProto& graph) : m_place(place), m_graph(graph) {
    for (std::size_t i = 0; i < place.inputs.size(); ++i) m_names.emplace(numbered("x", i), place.inputs[i]);
    for (std::size_t i = 0; i < place.outputs.size(); ++i) m_names.emplace(numbered("y", i), place.outputs[i]);
  }

  std::vector<WrittenConstant> run(const ::onnx::GraphProto& kept) {
    for (const auto& input : kept.input()) addInput(input);
    std::vector<WrittenConstant> constants;
    for (const auto& tensor : kept.initializer()) {
      ::onnx::TensorProto& written = *m_graph.add_initializer();
      written = tensor;
      written.set_name(nameOf(tensor.name()));
      const bool isFilled = tensor.has_raw_data() || tensor.int64_data_size() > 0 || tensor.float_data_size() > 0;
      if (!isFilled && numElements(shapeOf(tensor)) > 0)
        constants.push_back(
            {m_graph.initializer_size() - 1, fmt::format("{}.{}", m_place.id, withoutInner(tensor.name()))});
    }
    convert(kept);
    int number = 0;
    for (const auto& node : kept.node()) addNode(node, ++number);
    return constants;
  }

 private:
  void convert(const ::onnx::GraphProto& kept) {
    std::map<std::string, std::int32_t> types;
    for (const auto& value : kept.value_info()) types[value.name()] = value.type().tensor_type().elem_type();
    const auto differs = [&](const std::string& name, std::int32_t given) {
      const auto type = types.find(name);
      return type != types.end() && type->second != 0 && type->second != given;
    };
    for (std::size_t i = 0; i < m_place.inputTypes.size(); ++i)
      if (const std::string name = numbered("x", i); differs(name, m_place.inputTypes[i]))
        addCast(m_place.inputs[i], m_names[name] = nameOf(name + "_as_read"), types[name]);
    for (std::size_t i = 0; i < m_place.outputTypes.size(); ++i)
      if (const std::string name = numbered("y", i); differs(name, m_place.outputTypes[i]))
        addCast(m_names[name] = nameOf(name + "_as_made"), m_place.outputs[i], m_place.outputTypes[i]);
  }

  void addCast(const std::string& from, const std::string& to, std::int32_t type) {
    ::onnx::NodeProto& node = *m_graph.add_node();
    node.set_op_type("Cast");
    node.set_name(to + "_cast");
    node.add_input(from);
    node.add_output(to);
    setAttribute(node, "to", type);
  }

  static std::string_view withoutInner(std::string_view name) {
    return name.starts_with(kInner) ? name.substr(1) : name;
  }

  std::string nameOf(const std::string& name) const {
    const auto known = m_names.find(name);
    return known != m_names.end() ? known->second : fmt::format("{}/{}", m_place.id, withoutInner(name));
  }

  /// Another External may read the same.
  void addInput(const ::onnx::ValueInfoProto& input) {
    m_names.emplace(input.name(), input.name());
    const auto isIt = [&](const auto& each) { return each.name() == input.name(); };
    if (std::ranges::none_of(m_graph.input(), isIt)) *m_graph.add_input() = input;
  }

  void addNode(const ::onnx::NodeProto& node, int number) {
    ::onnx::NodeProto& written = *m_graph.add_node();
    written = node;
    written.set_name(fmt::format("{}/{}_{}", m_place.id, node.op_type(), number));
    for (auto* const names : {written.mutable_input(), written.mutable_output()})
      for (std::string& name : *names)
        if (!name.empty()) name = nameOf(name);
  }

  const KeptPlace& m_place;
  ::onnx::GraphProto& m_graph;
  std::map<std::string, std::string> m_names;  // by those of the text
};

bool makesAll(const ::onnx::GraphProto& graph, std::size_t numOutputs) {
  std::set<std::string> made;
  for (const auto& node : graph.node()) made.insert(node.output().begin(), node.output().end());
  for (std::size_t i = 0; i < numOutputs; ++i)
    if (!made.contains(numbered("y", i))) return false;
  return true;
}

}  // namespace

std::optional<KeptNodes> keepNodes(const OnnxReading& graph, const OnnxOpsets& opsets,
                                   const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                                   const KeptInputs& ids, const std::filesystem::path& folder) {
  return NodeKeeper(graph, ids, folder).run(opsets, inputs, outputs);
}

Result<Tensor> keptTensor(const KeptConstant& constant, const std::filesystem::path& folder) {
  const ::onnx::TensorProto& tensor = *constant.tensor;
  Result<std::vector<std::byte>> bytes = elementBytes(tensor, folder);
  if (!bytes) return bytes.error();
  std::optional<DType> dtype = floatTypeOf(tensor.data_type());
  if (tensor.data_type() == ::onnx::TensorProto::INT64) dtype = DType::I64;
  Tensor kept{.spec = {.dtype = dtype.value_or(DType::U8),
                       .shape = dtype ? shapeOf(tensor) : Shape{static_cast<std::int64_t>(bytes->size())}},
              .data = std::move(*bytes)};
  return kept;
}

Result<void> fillKept(::onnx::TensorProto& initializer, const Tensor& tensor, std::string_view name) {
  const std::int64_t size = numElements(shapeOf(initializer)) * elementSize(initializer.data_type());
  if (size != static_cast<std::int64_t>(tensor.data.size()))
    return Error{
        fmt::format("{}: the given tensor has {} bytes, but the kept nodes need {}.", name, tensor.data.size(), size)};
  initializer.set_raw_data(tensor.data.data(), tensor.data.size());
  return {};
}

Result<std::vector<WrittenConstant>> writeKeptNodes(const std::string& text, const KeptPlace& place,
                                                    ::onnx::GraphProto& graph, OnnxOpsets& opsets) {
  const std::optional<std::string> bytes = fromBase64(text);
  ::onnx::ModelProto model;
  if (!bytes || !model.ParseFromString(*bytes) || !makesAll(model.graph(), place.outputs.size()))
    return Error{
        fmt::format("{} (External): its attribute nodes does not fit {} inputs and {} outputs. Import the model again, "
                    "or export the parts before and after it separately.",
                    place.id, place.inputs.size(), place.outputs.size())};
  Modernizer modernizer(*model.mutable_graph(), standardVersion(model.opset_import()));
  for (auto& node : *model.mutable_graph()->mutable_node()) modernizer.run(node);
  merge(model.opset_import(), opsets);
  return KeptWriting(place, graph).run(model.graph());
}

}  // namespace fuseline
