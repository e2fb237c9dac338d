// Names are those of the pipeline as far as they are free; every tensor is made once.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_graph.h"

#include "core/ops/external.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

static_assert(std::endian::native == std::endian::little, "raw_data is little-endian.");

struct AttributeWriter {
  ::onnx::AttributeProto& proto;

  void operator()(std::int64_t value) const {
    proto.set_type(::onnx::AttributeProto::INT);
    proto.set_i(value);
  }
  void operator()(float value) const {
    proto.set_type(::onnx::AttributeProto::FLOAT);
    proto.set_f(value);
  }
  void operator()(const std::string& value) const {
    proto.set_type(::onnx::AttributeProto::STRING);
    proto.set_s(value);
  }
  void operator()(const std::vector<std::int64_t>& values) const {
    proto.set_type(::onnx::AttributeProto::INTS);
    for (const std::int64_t value : values) proto.add_ints(value);
  }
};

template <class T>
void setData(::onnx::TensorProto& tensor, const std::vector<T>& values) {
  tensor.set_raw_data(values.data(), values.size() * sizeof(T));
}

/// "norm" for the first output, "save.extra" for a further one: the name of the node that produces it.
std::string nodeName(const Node& node, int slot) {
  const std::string& port = node.operation->outputs[static_cast<std::size_t>(slot)].name;
  return slot == 0 ? node.id : fmt::format("{}.{}", node.id, port);
}

}  // namespace

void setType(::onnx::ValueInfoProto& info, const TensorSpec& spec) {
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(onnxType(spec.dtype));
  auto& shape = *tensor.mutable_shape();
  for (const std::int64_t extent : spec.shape) shape.add_dim()->set_dim_value(extent);
}

OnnxGraph::OnnxGraph(const Graph& graph, std::int64_t opset) : m_graph(graph), m_opset(opset) {
  nameValues();
  declareInputs();
}

// ---- names

std::string OnnxGraph::unique(const std::string& wish) {
  std::string name = wish;
  for (int& number = m_numbers.try_emplace(wish, 1).first->second; !m_taken.insert(name).second;)
    name = fmt::format("{}_{}", wish, ++number);
  return name;
}

std::string OnnxGraph::partName(std::string_view part) const { return fmt::format("{}/{}", operation().id, part); }

/// A tensor that leaves the pipeline is called like the output.
void OnnxGraph::nameValues() {
  m_valueNames.resize(m_graph.values().size());
  const auto name = [&](ValueId value, const std::string& wish) {
    std::string& given = m_valueNames[static_cast<std::size_t>(value)];
    if (given.empty()) given = unique(wish);
  };
  for (const ValueId input : m_graph.inputs()) name(input, m_graph.value(input).name);
  for (const GraphOutput& output : m_graph.outputs()) name(output.value, output.name);
  for (ValueId value = 0; value < static_cast<ValueId>(m_graph.values().size()); ++value)
    name(value, m_graph.value(value).name);
}

void OnnxGraph::declareInputs() {
  for (const ValueId input : m_graph.inputs()) {
    if (isOfExternal(m_graph.value(input).name)) continue;
    ::onnx::ValueInfoProto& info = *m_proto.add_input();
    info.set_name(m_valueNames[static_cast<std::size_t>(input)]);
    setType(info, m_graph.value(input).spec);
  }
}

// ---- the current op

void OnnxGraph::beginOperation(NodeId id) { m_node = id; }

OnnxValue OnnxGraph::input(int slot) const {
  const ValueId value = operation().inputs[static_cast<std::size_t>(slot)];
  return {m_valueNames[static_cast<std::size_t>(value)], m_graph.value(value).spec.dtype};
}

const TensorSpec& OnnxGraph::inputSpec(int slot) const { return m_graph.spec(m_node, OperandKind::Input, slot); }

const TensorSpec& OnnxGraph::outputSpec(int slot) const { return m_graph.spec(m_node, OperandKind::Output, slot); }

OnnxValue OnnxGraph::parameter(int slot) {
  const TensorSpec& spec = operation().parameters[static_cast<std::size_t>(slot)];
  const std::string parameter = operation().parameterName(slot);
  const std::string name = unique(parameter);
  addInitializer(name, onnxType(spec.dtype), spec.shape);
  m_weights.push_back({.initializer = m_proto.initializer_size() - 1, .parameter = parameter});
  return {name, spec.dtype};
}

std::pair<OnnxValue, OnnxValue> OnnxGraph::quantizedParameter(const QuantizerSpec& quantizer, std::string scaleName) {
  const OnnxValue codes = parameter();
  m_proto.mutable_initializer(m_proto.initializer_size() - 1)->set_data_type(onnxType(quantizer.format));
  m_weights.back().quantizer = quantizer;
  m_weights.back().scaleName = std::move(scaleName);
  const std::string scale = unique(codes.name + ".scale_inv");
  addInitializer(scale, onnxType(DType::F32), {});
  return {codes, {scale, DType::F32}};
}

void OnnxGraph::setOutput(int slot, OnnxValue value) {
  const auto id = static_cast<std::size_t>(operation().outputs[static_cast<std::size_t>(slot)]);
  const DType dtype = m_graph.values()[id].spec.dtype;
  value = cast(value, dtype);
  const bool isLast = m_proto.node_size() > 0 && m_proto.node().rbegin()->output(0) == value.name &&
                      value.name.starts_with(partName(""));
  if (!isLast) add("Identity", {value}, "identity");
  ::onnx::NodeProto& node = *m_proto.mutable_node()->rbegin();
  node.set_name(nodeName(operation(), slot));
  node.set_output(0, m_valueNames[id]);
  node.set_doc_string(fmt::format("{}: {}", operation().operation->name, operation().operation->formula));
  ::onnx::ValueInfoProto& info = *m_proto.add_value_info();
  info.set_name(m_valueNames[id]);
  setType(info, m_graph.values()[id].spec);
}

// ---- nodes

std::vector<OnnxValue> OnnxGraph::addSeveral(const char* type, const std::vector<OnnxValue>& inputs,
                                             std::size_t numOutputs, std::string_view part, OnnxAttributes attributes) {
  ::onnx::NodeProto& node = *m_proto.add_node();
  node.set_op_type(type);
  node.set_name(unique(partName(part)));
  for (const OnnxValue& input : inputs) node.add_input(input.name);
  for (const auto& [name, value] : attributes) {
    ::onnx::AttributeProto& proto = *node.add_attribute();
    proto.set_name(name);
    std::visit(AttributeWriter{proto}, value);
  }
  std::vector<OnnxValue> outputs;
  for (std::size_t i = 0; i < numOutputs; ++i) {
    outputs.push_back({numOutputs == 1 ? node.name() : unique(fmt::format("{}{}", node.name(), i)), inputs[0].dtype});
    node.add_output(outputs.back().name);
  }
  return outputs;
}

OnnxValue OnnxGraph::add(const char* type, const std::vector<OnnxValue>& inputs, std::string_view part,
                         OnnxAttributes attributes) {
  return addSeveral(type, inputs, 1, part, std::move(attributes)).front();
}

OnnxValue OnnxGraph::reshape(const OnnxValue& x, const Shape& from, const Shape& to, std::string_view part) {
  if (numElements(to) == 0) return add("Reshape", {x, integers(to)}, part, {{"allowzero", std::int64_t{1}}});
  Shape wanted = to;
  const auto numSame = static_cast<std::size_t>(std::ranges::mismatch(from, to).in2 - to.begin());
  std::fill_n(wanted.begin(), numSame, 0);
  if (numSame < wanted.size()) wanted[numSame] = -1;
  return add("Reshape", {x, integers(wanted)}, part);
}

OnnxValue OnnxGraph::cast(const OnnxValue& value, DType dtype) {
  return value.dtype == dtype ? value : castTo(value, dtype);
}

OnnxValue OnnxGraph::castFromBool(const OnnxValue& value) { return castTo(value, DType::F32); }

OnnxValue OnnxGraph::castTo(const OnnxValue& value, DType dtype) {
  const OnnxValue result = add("Cast", {value}, dtypeName(dtype), {{"to", static_cast<std::int64_t>(onnxType(dtype))}});
  return {result.name, dtype};
}

// ---- initializers

::onnx::TensorProto* OnnxGraph::addInitializer(const std::string& name, std::int32_t type, const Shape& shape) {
  ::onnx::TensorProto* const tensor = m_proto.add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(type);
  for (const std::int64_t extent : shape) tensor->add_dims(extent);
  return tensor;
}

template <class T>
OnnxValue OnnxGraph::shared(const OnnxValue& wish, std::int32_t type, const Shape& shape,
                            const std::vector<T>& values) {
  const auto [known, isNew] = m_constants.try_emplace(std::pair(wish.name, type), wish);
  OnnxValue& constant = known->second;
  if (!isNew) return constant;
  constant.name = unique(wish.name);
  setData(*addInitializer(constant.name, type, shape), values);
  return constant;
}

OnnxValue OnnxGraph::number(double value) {
  const auto rounded = static_cast<float>(value);
  return shared({fmt::format("{}", rounded), DType::F32}, onnxType(DType::F32), {}, std::vector{rounded});
}

OnnxValue OnnxGraph::integers(const std::vector<std::int64_t>& values) {
  const Shape shape = {static_cast<std::int64_t>(values.size())};
  return shared({fmt::format("[{}]", fmt::join(values, ", ")), DType::I64}, onnxType(DType::I64), shape, values);
}

OnnxValue OnnxGraph::integer(std::int64_t value) {
  return shared({fmt::format("{}", value), DType::I64}, onnxType(DType::I64), {}, std::vector{value});
}

OnnxValue OnnxGraph::extent(int slot, std::int64_t axis, std::int64_t value) {
  const Shape& shape = inputSpec(slot).shape;
  if (axis >= static_cast<std::int64_t>(shape.size()) || shape[static_cast<std::size_t>(axis)] != value)
    return integer(value);
  const OnnxValue extents = add("Shape", {input(slot)}, "extents");
  return {add("Gather", {extents, integer(axis)}, "extent").name, DType::I64};
}

OnnxValue OnnxGraph::numbers(std::string_view part, const Shape& shape, const std::vector<float>& values) {
  return shared({partName(part), DType::F32}, onnxType(DType::F32), shape, values);
}

OnnxValue OnnxGraph::zeroPoint(ElementFormat format) {
  return shared({fmt::format("zero_{}", formatName(format)), DType::E4M3}, onnxType(format), {},
                std::vector<std::uint8_t>{0});
}

// ---- the end

/// ONNX has no tensor under two names, so that an Identity makes the second.
::onnx::GraphProto OnnxGraph::finish() {
  std::set<std::string> named;
  for (const GraphOutput& output : m_graph.outputs()) {
    if (isOfExternal(output.name)) continue;
    const Value& value = m_graph.value(output.value);
    std::string name = m_valueNames[static_cast<std::size_t>(output.value)];
    if (value.producer < 0 || !named.insert(name).second) {
      ::onnx::NodeProto& node = *m_proto.add_node();
      node.set_op_type("Identity");
      node.add_input(name);
      name = unique(output.name);
      node.set_name(name);
      node.add_output(name);
    }
    ::onnx::ValueInfoProto& info = *m_proto.add_output();
    info.set_name(name);
    setType(info, value.spec);
  }
  // Declared outputs are not declared again.
  auto& infos = *m_proto.mutable_value_info();
  infos.erase(std::remove_if(infos.begin(), infos.end(), [&](const auto& info) { return named.contains(info.name()); }),
              infos.end());
  return std::move(m_proto);
}

}  // namespace fuseline
