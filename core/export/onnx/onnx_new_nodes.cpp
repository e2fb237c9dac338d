// Nodes of a graph that nobody reads any more go with the new ones that are not needed after all.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_new_nodes.h"

#include "core/export/onnx/onnx_attention.h"
#include "core/lowering/expression.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

using OnnxNodes = ::google::protobuf::RepeatedPtrField<OnnxNode>;

void leaveOutUnread(OnnxNodes& all, const ::onnx::GraphProto& graph) {
  std::set<std::string> read;
  for (const auto& output : graph.output()) read.insert(output.name());
  std::vector<bool> isKept(static_cast<std::size_t>(all.size()), false);
  for (int i = all.size(); i-- > 0;) {
    const auto isRead = [&](const std::string& output) { return read.contains(output); };
    if (std::ranges::none_of(all[i].output(), isRead)) continue;
    isKept[static_cast<std::size_t>(i)] = true;
    for (const std::string& input : readBy(all[i])) read.insert(input);
  }
  OnnxNodes kept;
  for (int i = 0; i < all.size(); ++i)
    if (isKept[static_cast<std::size_t>(i)]) kept.Add()->Swap(&all[i]);
  all.Swap(&kept);
}

}  // namespace

OnnxNewNodes::OnnxNewNodes(::onnx::GraphProto& graph, const OnnxReading& reading, OnnxViews& views)
    : m_graph(graph), m_reading(reading), m_views(views) {
  for (const auto* const values : {&graph.value_info(), &graph.input()})
    for (const auto& value : *values) noteExtents(value);
}

void OnnxNewNodes::noteExtents(const ::onnx::ValueInfoProto& value) {
  for (const auto& extent : value.type().tensor_type().shape().dim()) {
    if (extent.has_dim_value()) continue;
    const ExpressionValue number =
        evaluate(extent.dim_param(), [this](const std::string& name) { return std::optional(m_views.numberOf(name)); });
    if (const auto* const known = std::get_if<std::int64_t>(&number)) m_texts.emplace(*known, extent.dim_param());
    for (const std::string& name : symbolNames(extent.dim_param())) m_texts.emplace(m_views.numberOf(name), name);
  }
}

/// "4*batch" of its number here.
std::optional<std::string> OnnxNewNodes::textOf(std::int64_t number) const {
  if (const auto known = m_texts.find(number); known != m_texts.end()) return known->second;
  std::string text;
  for (const auto& [prime, name] : m_texts)
    for (; prime >= kLeastPrime && number % prime == 0 && number > 1; number /= prime)
      text += fmt::format("{}({})", text.empty() ? "" : "*", name);
  if (text.empty() || number == 1) return text.empty() ? std::nullopt : std::optional(text);
  return fmt::format("{}*{}", number, text);
}

/// Says the type of a new tensor.
void OnnxNewNodes::declare(const std::string& tensor, const Shape& extents, const std::string& like) {
  ::onnx::ValueInfoProto value;
  value.set_name(tensor);
  auto& type = *value.mutable_type()->mutable_tensor_type();
  const auto known = m_elementTypes.find(like);
  const std::int32_t element = known == m_elementTypes.end() ? m_reading.elementType(like) : known->second;
  m_elementTypes[tensor] = element;
  type.set_elem_type(element);
  for (const std::int64_t extent : extents) {
    const auto text = extent >= kLeastPrime ? textOf(extent) : std::nullopt;
    auto& written = *type.mutable_shape()->add_dim();
    if (text)
      written.set_dim_param(*text);
    else
      written.set_dim_value(extent);
  }
  *m_graph.add_value_info() = std::move(value);
  m_views.setExtents(tensor, extents);
  m_made.insert(tensor);
}

OnnxNode& OnnxNewNodes::add(const char* type, const std::vector<std::string>& inputs, const std::string& output) {
  OnnxNode& node = m_added[m_position].emplace_back(m_graph.node(m_position));  // for what its names are made of
  node.clear_input();
  node.clear_output();
  node.clear_attribute();
  node.clear_domain();
  node.set_op_type(type);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  return node;
}

void setTextOf(OnnxNode& node, const char* name, const std::string& text) {
  if (text.empty()) return;
  ::onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(::onnx::AttributeProto::STRING);
  attribute.set_s(text);
}

void OnnxNewNodes::addTranspose(const std::string& tensor, const std::string& output,
                                const std::vector<std::int64_t>& order) {
  ::onnx::AttributeProto& attribute = *add("Transpose", {tensor}, output).add_attribute();
  attribute.set_name("perm");
  attribute.set_type(::onnx::AttributeProto::INTS);
  for (const std::int64_t axis : order) attribute.add_ints(axis);
}

OnnxNode& OnnxNewNodes::addOperation(const char* operation, const std::vector<std::string>& inputs,
                                     const std::string& output, const Json& attributes, const std::string& ports,
                                     const std::string& note) {
  OnnxNode& node = add(operation, inputs, output);
  node.set_domain(kFuselineDomain);
  setTextOf(node, "attributes", attributes.dump());
  setTextOf(node, "ports", ports);
  setTextOf(node, "note", note);
  return node;
}

std::string OnnxNewNodes::reshaped(const std::string& tensor, const Shape& extents) {
  if (m_views.extents(tensor) == extents) return tensor;
  const std::string name = fmt::format("{}/[{}]", tensor, fmt::join(extents, ","));
  if (m_made.contains(name)) return name;
  declare(name, extents, tensor);
  add("Reshape", {tensor}, name);
  return name;
}

std::string OnnxNewNodes::addConstant(const std::string& name, const ::onnx::TensorProto& tensor) {
  OnnxNode& node = add("Constant", {}, name);
  ::onnx::AttributeProto& value = *node.add_attribute();
  value.set_name("value");
  value.set_type(::onnx::AttributeProto::TENSOR);
  *value.mutable_t() = tensor;
  return name;
}

std::string OnnxNewNodes::addNumber(const std::string& name, float number) {
  ::onnx::TensorProto tensor;
  tensor.set_data_type(::onnx::TensorProto::FLOAT);
  tensor.add_float_data(number);
  return addConstant(name, tensor);
}

std::string OnnxNewNodes::addNumbers(const std::string& name, const std::vector<double>& numbers) {
  ::onnx::TensorProto tensor;
  tensor.set_data_type(::onnx::TensorProto::FLOAT);
  tensor.add_dims(std::ssize(numbers));
  for (const double number : numbers) tensor.add_float_data(static_cast<float>(number));
  return addConstant(name, tensor);
}

std::string OnnxNewNodes::addIntegers(const std::string& name, const std::vector<std::int64_t>& integers) {
  ::onnx::TensorProto tensor;
  tensor.set_data_type(::onnx::TensorProto::INT64);
  tensor.add_dims(std::ssize(integers));
  for (const std::int64_t integer : integers) tensor.add_int64_data(integer);
  return addConstant(name, tensor);
}

void OnnxNewNodes::insertBehindInput(int position, OnnxNode node) {
  auto& added = m_added[position];
  const auto maker = std::ranges::find_if(added, [&](const OnnxNode& each) { return each.output(0) == node.input(0); });
  added.insert(maker == added.end() ? added.begin() : maker + 1, std::move(node));
}

void OnnxNewNodes::write(const std::set<int>& replaced) {
  OnnxNodes all;
  for (int position = 0; position < m_graph.node_size(); ++position) {
    for (OnnxNode& node : m_added[position]) *all.Add() = std::move(node);
    if (!replaced.contains(position)) *all.Add() = m_graph.node(position);
  }
  leaveOutUnread(all, m_graph);
  m_graph.mutable_node()->Swap(&all);
}

}  // namespace fuseline
