// Names within a text begin with a mark; in a model they become those of the place.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/kept/kept_nodes.h"

#include "core/export/onnx/kept/old_forms.h"
#include "core/export/onnx/onnx_attention.h"
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
  NodeKeeper(const OnnxReading& reading, const OnnxOpsets& opsets, const KeptRange& range, const KeptInputs& ids,
             const std::filesystem::path& folder)
      : m_reading(reading), m_opsets(opsets), m_range(range), m_ids(ids), m_folder(folder) {
    const ::onnx::GraphProto& graph = reading.graph();
    for (int i = 0; i < graph.node_size(); ++i)
      for (const std::string& output : graph.node(i).output()) m_makers.emplace(output, i);
    for (const auto& tensor : graph.initializer()) m_constants.emplace(tensor.name(), &tensor);
    for (const auto& input : graph.input()) m_inputs.emplace(input.name(), &input);
  }

  std::optional<KeptNodes> run() {
    for (const std::string& input : m_range.inputs) addInput(input);
    for (std::size_t i = 0; i < m_range.outputs.size(); ++i) m_names.emplace(m_range.outputs[i], numbered("y", i));
    std::set<std::string> given = m_range.madeByOps;
    given.insert(m_range.inputs.begin(), m_range.inputs.end());
    if (!find(m_range.outputs, given)) return std::nullopt;
    ::onnx::ModelProto model;
    ::onnx::GraphProto& graph = *model.mutable_graph();
    for (const int position : m_positions)
      if (!write(m_reading.graph().node(position), *graph.add_node(), graph)) return std::nullopt;
    if (m_range.hasTypes || m_reading.isMixed()) noteTypes(graph);
    for (const auto& opset : m_opsets)
      if (isUsed(opset.domain())) *model.add_opset_import() = opset;
    return KeptNodes{toBase64(model.SerializeAsString()), std::move(m_kept), std::move(m_read)};
  }

 private:
  const std::string& addInput(const std::string& tensor) {
    const auto [name, isNew] = m_names.emplace(tensor, numbered("x", m_read.size()));
    if (isNew) m_read.push_back(tensor);
    return name->second;
  }

  /// Searches from the outputs back to the given tensors, so that equal layers are found in the same order, independent
  /// of the order of their nodes in the model. No node that computes a given tensor is included.
  bool find(const std::vector<std::string>& outputs, const std::set<std::string>& given) {
    struct Visit {
      int position;
      std::vector<std::string> inputs;
      std::size_t nextInput = 0;
    };
    const auto visit = [&](int position) { return Visit{position, readBy(m_reading.graph().node(position))}; };
    for (const std::string& output : outputs) {
      std::vector<Visit> visits;
      if (!enter(output, {}, visits, visit)) return false;
      while (!visits.empty()) {
        Visit& visiting = visits.back();
        if (visiting.nextInput < visiting.inputs.size()) {
          const std::string input = visiting.inputs[visiting.nextInput++];
          if (!enter(input, given, visits, visit)) return false;
          continue;
        }
        m_positions.push_back(visiting.position);
        visits.pop_back();
      }
    }
    return true;
  }

  /// Begins with the producer of a tensor, unless it is known. False: the tensor has no producer.
  template <class Visits, class Visit>
  bool enter(const std::string& tensor, const std::set<std::string>& given, Visits& visits, const Visit& visit) {
    if (tensor.empty() || given.contains(tensor) || m_constants.contains(tensor)) return true;
    const auto maker = m_makers.find(tensor);
    if (maker == m_makers.end()) return m_inputs.contains(tensor);
    if (m_entered.insert(maker->second).second) visits.push_back(visit(maker->second));
    return true;
  }

  /// The pipeline may have these in another type.
  void noteTypes(::onnx::GraphProto& graph) const {
    for (const auto* const tensors : {&m_read, &m_range.outputs})
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
    if (node.domain() == kFuselineDomain) return false;
    kept.set_op_type(node.op_type());
    if (!isStandard(node.domain())) kept.set_domain(node.domain());
    for (const auto& attribute : node.attribute()) {
      if (attribute.graphs_size() > 0) return false;
      ::onnx::AttributeProto& written = *kept.add_attribute();
      written = attribute;
      written.clear_doc_string();
      if (attribute.has_g() && !writeBranch(*written.mutable_g(), graph)) return false;
    }
    for (const std::string& input : node.input()) {
      const std::optional<std::string> name = read(input, graph);
      if (!name) return false;
      kept.add_input(*name);
    }
    for (const std::string& output : node.output()) kept.add_output(output.empty() ? "" : made(output));
    if (isOfLastAxis(node)) sayLastAxis(kept);
    const bool isWithoutShape = isStandard(node.domain()) && node.op_type() == "Reshape" && node.input_size() == 1;
    return !isWithoutShape || addShape(node, kept, graph);
  }

  /// Import adds Reshapes without a shape. False: several extents are symbols, and not those of the input.
  bool addShape(const ::onnx::NodeProto& reshape, ::onnx::NodeProto& kept, ::onnx::GraphProto& graph) {
    const auto *const from = m_reading.type(reshape.input(0)), *const to = m_reading.type(reshape.output(0));
    if (!from || !to) return false;
    ::onnx::TensorProto& shape = *graph.add_initializer();
    shape.set_name(made(reshape.output(0) + "/shape"));
    shape.set_data_type(::onnx::TensorProto::INT64);
    shape.add_dims(to->shape().dim_size());
    for (int axis = 0; axis < to->shape().dim_size(); ++axis) {
      const auto& extent = to->shape().dim(axis);
      const bool isSame = axis < from->shape().dim_size() && extent.has_dim_param() &&
                          from->shape().dim(axis).dim_param() == extent.dim_param();
      if (extent.has_dim_value() && extent.dim_value() == 0) return false;
      shape.add_int64_data(extent.has_dim_value() ? extent.dim_value() : isSame ? 0 : -1);
    }
    kept.add_input(shape.name());
    return std::ranges::count(shape.int64_data(), -1) <= 1;
  }

  /// A subgraph reads tensors of the graph around it; its own hide others of the same name.
  bool writeBranch(::onnx::GraphProto& branch, ::onnx::GraphProto& graph) {
    const std::map<std::string, std::string> outer = m_names;
    const auto define = [this](const std::string& name) {
      if (!name.empty()) m_names[name] = fmt::format("{}i{}", kInner, ++m_numInner);
    };
    for (const auto& input : branch.input()) define(input.name());
    for (const auto& tensor : branch.initializer()) define(tensor.name());
    for (const auto& node : branch.node())
      for (const std::string& output : node.output()) define(output);
    const bool isWritten = writeBranchNames(branch, graph);
    std::map<std::string, std::string> inner = std::exchange(m_names, outer);
    for (const auto& [name, kept] : inner)  // constants and inputs that only the branch reads
      if (!kept.starts_with(fmt::format("{}i", kInner))) m_names.emplace(name, kept);
    return isWritten;
  }

  bool writeBranchNames(::onnx::GraphProto& branch, ::onnx::GraphProto& graph) {
    branch.clear_value_info();
    branch.clear_doc_string();
    for (auto& tensor : *branch.mutable_initializer()) {
      if (tensor.data_location() == ::onnx::TensorProto::EXTERNAL || branch.sparse_initializer_size() > 0) return false;
      tensor.set_name(m_names.at(tensor.name()));
    }
    for (auto& input : *branch.mutable_input()) input.set_name(m_names.at(input.name()));
    for (auto& node : *branch.mutable_node()) {
      ::onnx::NodeProto kept;
      if (!write(node, kept, graph)) return false;
      kept.set_name(fmt::format("{}_{}", node.op_type(), ++m_numInner));
      node = std::move(kept);
    }
    for (auto& output : *branch.mutable_output()) {
      const std::optional<std::string> name = read(output.name(), graph);
      if (!name) return false;
      output.set_name(*name);
    }
    return true;
  }

  bool isOfLastAxis(const ::onnx::NodeProto& node) const {
    return isStandard(node.domain()) && isSoftmax(node) && standardOpset(m_opsets) < kOpsetOfSoftmaxOfOneAxis &&
           m_reading.axisFromEnd(inputOf(node, 0), integerOf(node, "axis", 1)) == -1;
  }

  static void sayLastAxis(::onnx::NodeProto& node) {
    node.clear_attribute();  // it has no other
    ::onnx::AttributeProto& axis = *node.add_attribute();
    axis.set_name("axis");
    axis.set_type(::onnx::AttributeProto::INT);
    axis.set_i(-1);
  }

  const std::string& made(const std::string& tensor) {
    return m_names.try_emplace(tensor, fmt::format("{}t{}", kInner, m_names.size())).first->second;
  }

  std::optional<std::string> read(const std::string& tensor, ::onnx::GraphProto& graph) {
    if (tensor.empty()) return "";
    if (const auto known = m_names.find(tensor); known != m_names.end()) return known->second;
    if (m_range.madeByOps.contains(tensor)) return addInput(tensor);
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
  const OnnxOpsets& m_opsets;
  const KeptRange& m_range;
  const KeptInputs& m_ids;
  const std::filesystem::path& m_folder;
  std::map<std::string, int> m_makers;
  std::map<std::string, const ::onnx::TensorProto*> m_constants;
  std::map<std::string, const ::onnx::ValueInfoProto*> m_inputs;
  std::map<std::string, std::string> m_names;  // in the text, by those of the model
  std::vector<std::string> m_read;             // the inputs, in the order of their numbers
  std::vector<int> m_positions;                // of nodes, in an order in which they can run
  std::set<int> m_entered;
  std::vector<KeptConstant> m_kept;
  int m_numConstants = 0;
  int m_numInner = 0;
};

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
      return type != types.end() && type->second != 0 && given != 0 && type->second != given;
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
    ::onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name("to");
    attribute.set_type(::onnx::AttributeProto::INT);
    attribute.set_i(type);
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
    const auto makesIt = [&](const auto& node) {
      return std::ranges::find(node.output(), input.name()) != node.output().end();
    };
    const auto isIt = [&](const auto& each) { return each.name() == m_names.at(input.name()); };
    const bool isTaken = std::ranges::any_of(m_graph.node(), makesIt);
    m_names.emplace(input.name(), isTaken ? input.name() + "_input" : input.name());
    if (std::ranges::any_of(m_graph.input(), isIt)) return;
    ::onnx::ValueInfoProto& added = *m_graph.add_input();
    added = input;
    added.set_name(m_names.at(input.name()));
  }

  void addNode(const ::onnx::NodeProto& node, int number) {
    ::onnx::NodeProto& written = *m_graph.add_node();
    written = node;
    written.set_name(fmt::format("{}/{}_{}", m_place.id, node.op_type(), number));
    rename(written);
  }

  void rename(::onnx::NodeProto& node) const {
    for (auto* const names : {node.mutable_input(), node.mutable_output()})
      for (std::string& name : *names)
        if (!name.empty()) name = nameOf(name);
    for (auto& attribute : *node.mutable_attribute())
      if (attribute.has_g()) rename(*attribute.mutable_g());
  }

  void rename(::onnx::GraphProto& branch) const {
    for (auto* const infos : {branch.mutable_input(), branch.mutable_output()})
      for (auto& info : *infos) info.set_name(nameOf(info.name()));
    for (auto& tensor : *branch.mutable_initializer()) tensor.set_name(nameOf(tensor.name()));
    for (auto& node : *branch.mutable_node()) rename(node);
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

std::optional<KeptNodes> keepNodes(const OnnxReading& graph, const OnnxOpsets& opsets, const KeptRange& range,
                                   const KeptInputs& ids, const std::filesystem::path& folder) {
  return NodeKeeper(graph, opsets, range, ids, folder).run();
}

void renameTensors(::onnx::GraphProto& graph, const std::map<std::string, std::string>& names) {
  const auto rename = [&](std::string& name) {
    if (const auto found = names.find(name); found != names.end()) name = found->second;
  };
  for (auto& node : *graph.mutable_node()) {
    for (auto* const tensors : {node.mutable_input(), node.mutable_output()}) std::ranges::for_each(*tensors, rename);
    for (auto& attribute : *node.mutable_attribute())
      if (attribute.has_g()) renameTensors(*attribute.mutable_g(), names);
  }
  for (auto* const infos : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()})
    for (auto& info : *infos) rename(*info.mutable_name());
}

std::string keptOutputName(std::size_t index) { return numbered("y", index); }

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
  const std::int64_t size = sizeInBytes(initializer);
  if (size != static_cast<std::int64_t>(tensor.data.size()))
    return Error{
        fmt::format("{}: the given tensor has {} bytes, but the kept nodes need {}.", name, tensor.data.size(), size)};
  initializer.set_raw_data(tensor.data.data(), tensor.data.size());
  return {};
}

std::optional<::onnx::ModelProto> keptModel(const std::string& text, std::size_t numOutputs) {
  const std::optional<std::string> bytes = fromBase64(text);
  ::onnx::ModelProto model;
  if (!bytes || !model.ParseFromString(*bytes) || !makesAll(model.graph(), numOutputs)) return std::nullopt;
  return model;
}

Result<std::vector<WrittenConstant>> writeKeptNodes(const std::string& text, const KeptPlace& place,
                                                    ::onnx::GraphProto& graph, OnnxOpsets& opsets) {
  std::optional<::onnx::ModelProto> kept = keptModel(text, place.outputs.size());
  if (kept) return writeKeptNodes(std::move(*kept), place, graph, opsets);
  return Error{fmt::format(
      "{} (External): attribute `nodes` does not match its {} inputs and {} outputs. Import the model again, "
      "or export the parts before and after it separately.",
      place.id, place.inputs.size(), place.outputs.size())};
}

std::vector<WrittenConstant> writeKeptNodes(::onnx::ModelProto kept, const KeptPlace& place, ::onnx::GraphProto& graph,
                                            OnnxOpsets& opsets) {
  writeNewForms(kept);
  merge(kept.opset_import(), opsets);
  return KeptWriting(place, graph).run(kept.graph());
}

}  // namespace fuseline
