// Everything is looked up by name, once.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_reading.h"

#include "core/numerics/bf16.h"
#include "core/tensor/tensor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <set>

namespace fuseline {

namespace {

bool isStandard(const ::onnx::NodeProto& node) { return node.domain().empty() || node.domain() == "ai.onnx"; }

/// Between floating-point types; intermediate precisions are not part of a pipeline file.
bool isFloatCast(const ::onnx::NodeProto& node) {
  return node.op_type() == "Cast" && floatTypeOf(static_cast<std::int32_t>(integerOf(node, "to", 0)));
}

bool isPassing(const ::onnx::NodeProto& node) {
  const bool isPlain = node.op_type() == "Identity" || node.op_type() == "Dropout";
  return isStandard(node) && node.input_size() > 0 && node.output_size() > 0 && (isPlain || isFloatCast(node));
}

double rounded(double value, DType dtype) {
  return Tensor::fromDoubles({.dtype = dtype, .shape = {}}, std::array{value}).toDoubles().front();
}

std::vector<std::int64_t> permutationOf(const ::onnx::NodeProto& transpose) {
  const auto* const perm = findAttribute(transpose, "perm");
  return perm ? std::vector<std::int64_t>(perm->ints().begin(), perm->ints().end()) : std::vector<std::int64_t>();
}

/// Does the second transpose revert the first one? Without a list both reverse all axes.
bool cancel(const ::onnx::NodeProto& first, const ::onnx::NodeProto& second) {
  const std::vector<std::int64_t> a = permutationOf(first), b = permutationOf(second);
  if (a.size() != b.size()) return false;
  for (std::size_t axis = 0; axis < b.size(); ++axis) {
    const bool isAxis = b[axis] >= 0 && b[axis] < static_cast<std::int64_t>(a.size());
    if (!isAxis || a[static_cast<std::size_t>(b[axis])] != static_cast<std::int64_t>(axis)) return false;
  }
  return true;
}

std::vector<double> decoded(const std::vector<std::uint16_t>& halves, DType dtype) {
  std::vector<double> values(halves.size());
  decode(reinterpret_cast<const std::byte*>(halves.data()), dtype, values);
  return values;
}

/// The elements of a tensor that has them in the message itself, as numbers.
std::optional<std::vector<double>> elementsOf(const ::onnx::TensorProto& tensor) {
  if (tensor.data_type() == ::onnx::TensorProto::FLOAT && tensor.float_data_size() > 0)
    return std::vector<double>(tensor.float_data().begin(), tensor.float_data().end());
  if (tensor.data_type() == ::onnx::TensorProto::INT64 && tensor.int64_data_size() > 0)
    return std::vector<double>(tensor.int64_data().begin(), tensor.int64_data().end());
  const auto half = floatTypeOf(tensor.data_type());
  if (half && *half != DType::F32 && tensor.int32_data_size() > 0) return decoded(halfBits(tensor), *half);
  const auto dtype = tensor.data_type() == ::onnx::TensorProto::INT64 ? DType::I64 : floatTypeOf(tensor.data_type());
  if (!dtype) return std::nullopt;
  const std::string& data = tensor.raw_data();
  std::vector<double> values(data.size() / static_cast<std::size_t>(sizeBytes(*dtype)));
  decode(reinterpret_cast<const std::byte*>(data.data()), *dtype, values);
  return values;
}

void addReads(const ::onnx::GraphProto& graph, std::vector<std::string>& names, std::set<std::string> inner) {
  for (const auto& input : graph.input()) inner.insert(input.name());
  for (const auto& tensor : graph.initializer()) inner.insert(tensor.name());
  for (const auto& node : graph.node()) inner.insert(node.output().begin(), node.output().end());
  const auto add = [&](const std::string& name) {
    if (!name.empty() && !inner.contains(name)) names.push_back(name);
  };
  for (const auto& node : graph.node()) {
    for (const std::string& input : node.input()) add(input);
    for (const auto& attribute : node.attribute())
      if (attribute.has_g()) addReads(attribute.g(), names, inner);
  }
  for (const auto& output : graph.output()) add(output.name());
}

/// The tensor has integers. False for those of another file.
bool isZero(const ::onnx::TensorProto& tensor) {
  const auto isOther = [](auto element) { return element != 0; };
  return tensor.data_location() != ::onnx::TensorProto::EXTERNAL && std::ranges::none_of(tensor.raw_data(), isOther) &&
         std::ranges::none_of(tensor.int32_data(), isOther);
}

/// Is all but the name the same?
bool hasSameContent(::onnx::TensorProto a, ::onnx::TensorProto b) {
  a.clear_name();
  b.clear_name();
  return a.SerializeAsString() == b.SerializeAsString();
}

}  // namespace

std::optional<DType> floatTypeOf(std::int32_t type) {
  constexpr std::array kTypes = {DType::F32, DType::F16, DType::BF16};
  const auto found = std::ranges::find(kTypes, type, [](DType dtype) { return onnxType(dtype); });
  return found == kTypes.end() ? std::nullopt : std::optional(*found);
}

std::vector<std::uint16_t> halfBits(const ::onnx::TensorProto& tensor) {
  std::vector<std::uint16_t> halves;
  for (const std::int32_t value : tensor.int32_data()) halves.push_back(static_cast<std::uint16_t>(value));
  return halves;
}

Shape shapeOf(const ::onnx::TensorProto& tensor) { return {tensor.dims().begin(), tensor.dims().end()}; }

// ---- attributes

const ::onnx::AttributeProto* findAttribute(const ::onnx::NodeProto& node, std::string_view name) {
  for (const auto& attribute : node.attribute())
    if (attribute.name() == name) return &attribute;
  return nullptr;
}

std::int64_t integerOf(const ::onnx::NodeProto& node, std::string_view name, std::int64_t otherwise) {
  const auto* const attribute = findAttribute(node, name);
  return attribute ? attribute->i() : otherwise;
}

double realOf(const ::onnx::NodeProto& node, std::string_view name, double otherwise) {
  const auto* const attribute = findAttribute(node, name);
  return attribute ? static_cast<double>(attribute->f()) : otherwise;
}

std::string textOf(const ::onnx::NodeProto& node, std::string_view name, std::string_view otherwise) {
  const auto* const attribute = findAttribute(node, name);
  return attribute ? attribute->s() : std::string(otherwise);
}

const std::string& inputOf(const ::onnx::NodeProto& node, int index) {
  static const std::string kNone;
  return index < node.input_size() ? node.input(index) : kNone;
}

std::vector<std::string> readBy(const ::onnx::NodeProto& node) {
  std::vector<std::string> names;
  for (const std::string& input : node.input())
    if (!input.empty()) names.push_back(input);
  for (const auto& attribute : node.attribute())
    if (attribute.has_g()) addReads(attribute.g(), names, {});
  return names;
}

// ---- the graph

OnnxReading::OnnxReading(const ::onnx::GraphProto& graph, std::int64_t opset) : m_graph(graph), m_opset(opset) {
  for (const auto& tensor : graph.initializer()) {
    m_constants.emplace(tensor.name(), &tensor);
    m_typesOfModel.insert(tensor.data_type());
  }
  for (const auto* values : {&graph.input(), &graph.value_info(), &graph.output()})
    for (const auto& value : *values) noteType(value);
  for (int position = 0; position < graph.node_size(); ++position) noteMaker(position);
  for (const auto& node : graph.node())
    if (const std::string* const passed = passedOn(node)) {
      m_sources.emplace(node.output(0), source(*passed));  // at once to the first of a chain
      if (node.op_type() == "DequantizeLinear") m_dequantized.insert(node.input(0));
    }
  for (const auto& node : graph.node()) noteReaders(node);
  for (const auto& output : graph.output()) {
    ++m_readers[source(output.name())];
    if (m_sources.find(output.name()) == m_sources.end()) m_readAs[output.name()] = std::nullopt;
  }
}

void OnnxReading::noteType(const ::onnx::ValueInfoProto& value) {
  const auto& type = value.type().tensor_type();
  if (type.has_shape()) m_types.emplace(value.name(), &type);
  m_typesOfModel.insert(type.elem_type());
}

void OnnxReading::noteMaker(int position) {
  const ::onnx::NodeProto& node = m_graph.node(position);
  const std::int32_t elementType = elementTypeMadeBy(node);
  for (const std::string& output : node.output()) {
    m_makers.emplace(output, position);
    m_elementTypes.emplace(output, elementType);
  }
  const auto* const value = node.op_type() == "Constant" ? findAttribute(node, "value") : nullptr;
  if (value && node.output_size() > 0) m_constants.emplace(node.output(0), &value->t());
}

/// A conversion from integers to floating point makes a different tensor.
const std::string* OnnxReading::passedOn(const ::onnx::NodeProto& node) const {
  if (isStandard(node) && node.op_type() == "Concat") return onlyPart(node);
  if (!isPassing(node)) return undone(node);
  const std::int32_t type = elementType(node.input(0));
  return node.op_type() != "Cast" || type == 0 || floatTypeOf(type) ? &node.input(0) : nullptr;
}

/// The input of a Concat that has elements, if there is one such: a rotary embedding of all channels may be followed by
/// none that pass.
const std::string* OnnxReading::onlyPart(const ::onnx::NodeProto& concat) const {
  const auto isEmpty = [this](const std::string& part) {
    const auto type = m_types.find(part);
    return type != m_types.end() && std::ranges::any_of(type->second->shape().dim(), [](const auto& extent) {
             return extent.has_dim_value() && extent.dim_value() == 0;
           });
  };
  const auto parts = std::ranges::count_if(concat.input(), std::not_fn(isEmpty));
  if (parts != 1 || concat.input_size() < 2) return nullptr;
  return &*std::ranges::find_if(concat.input(), std::not_fn(isEmpty));
}

/// The input of the pair, if the last node of a pair undoes the first.
const std::string* OnnxReading::undone(const ::onnx::NodeProto& node) const {
  if (!isStandard(node) || node.input_size() == 0 || node.output_size() == 0) return nullptr;
  const auto made = m_makers.find(node.input(0));
  const ::onnx::NodeProto* const first = made == m_makers.end() ? nullptr : &m_graph.node(made->second);
  if (!first || !isStandard(*first) || first->input_size() == 0) return nullptr;
  const bool isQuantizing = first->op_type() == "QuantizeLinear" && !constant(first->input(0));  // not of a weight
  const bool isUndone = (node.op_type() == "DequantizeLinear" && isQuantizing && hasSameCodes(*first, node)) ||
                        (node.op_type() == "Transpose" && first->op_type() == "Transpose" && cancel(*first, node));
  return isUndone ? &first->input(0) : nullptr;
}

/// Do both nodes have one scale and one zero point?
bool OnnxReading::hasSameCodes(const ::onnx::NodeProto& quantize, const ::onnx::NodeProto& dequantize) const {
  const auto isSame = [&](int slot) {
    const std::string &a = inputOf(quantize, slot), &b = inputOf(dequantize, slot);
    const auto *const one = constant(a), *const other = constant(b);
    if (source(a) == source(b) || (one && other && hasSameContent(*one, *other))) return true;
    const std::optional<double> number = this->number(a);
    if (slot == 1) return number && number == this->number(b);
    return (a.empty() || (one && isZero(*one))) && (b.empty() || (other && isZero(*other)));
  };
  const auto isAlike = [&](const char* attribute, std::int64_t otherwise) {
    return integerOf(quantize, attribute, otherwise) == integerOf(dequantize, attribute, otherwise);
  };
  const bool isWhole = number(inputOf(quantize, 1)).has_value();
  return isSame(1) && isSame(2) && (isWhole || (isAlike("axis", 1) && isAlike("block_size", 0)));
}

void OnnxReading::noteReaders(const ::onnx::NodeProto& node) {
  const bool isFirstOfPair = node.output_size() > 0 && m_dequantized.contains(node.output(0));
  if (!passedOn(node) && !isFirstOfPair)
    for (const std::string& input : readBy(node)) ++m_readers[source(input)];
  const auto dtype =
      isFloatCast(node) ? floatTypeOf(static_cast<std::int32_t>(integerOf(node, "to", 0))) : std::nullopt;
  for (const std::string& input : node.input()) {
    const auto [entry, isFirst] = m_readAs.emplace(input, dtype);
    if (!isFirst && entry->second != dtype) entry->second = std::nullopt;
  }
}

/// A file may hold a ring of nodes that pass on each other's output.
const std::string& OnnxReading::source(const std::string& tensor) const {
  const std::string* result = &tensor;
  for (std::size_t steps = 0; steps <= m_sources.size(); ++steps) {
    const auto found = m_sources.find(*result);
    if (found == m_sources.end()) break;
    result = &found->second;
  }
  return *result;
}

int OnnxReading::position(const std::string& tensor) const {
  const auto found = m_makers.find(source(tensor));
  return found == m_makers.end() ? -1 : found->second;
}

const ::onnx::NodeProto* OnnxReading::maker(const std::string& tensor) const {
  const int found = position(tensor);
  return found < 0 ? nullptr : &m_graph.node(found);
}

const ::onnx::NodeProto* OnnxReading::makerOf(std::string_view type, const std::string& tensor) const {
  const ::onnx::NodeProto* const node = maker(tensor);
  return node && isStandard(*node) && node->op_type() == type ? node : nullptr;
}

int OnnxReading::numReaders(const std::string& tensor) const {
  const auto found = m_readers.find(source(tensor));
  return found == m_readers.end() ? 0 : found->second;
}

const ::onnx::TensorProto* OnnxReading::constant(const std::string& tensor) const {
  const auto found = m_constants.find(source(tensor));
  return found == m_constants.end() ? nullptr : found->second;
}

std::optional<double> OnnxReading::number(const std::string& tensor) const {
  const ::onnx::TensorProto* const proto = constant(tensor);
  if (!proto || std::ranges::any_of(proto->dims(), [](std::int64_t extent) { return extent != 1; }))
    return std::nullopt;
  const auto elements = elementsOf(*proto);
  return elements && elements->size() == 1 ? std::optional(elements->front()) : std::nullopt;
}

std::optional<std::vector<std::int64_t>> OnnxReading::integers(const std::string& tensor) const {
  const ::onnx::TensorProto* const proto = constant(tensor);
  if (!proto || proto->data_type() != ::onnx::TensorProto::INT64) return std::nullopt;
  std::vector<std::int64_t> values(proto->int64_data().begin(), proto->int64_data().end());
  if (values.empty()) {
    values.resize(proto->raw_data().size() / sizeof(std::int64_t));
    std::memcpy(values.data(), proto->raw_data().data(), values.size() * sizeof(std::int64_t));
  }
  // Otherwise they are in another file, or some are missing.
  const bool isWhole = static_cast<std::int64_t>(values.size()) == numElements(shapeOf(*proto));
  return isWhole ? std::optional(std::move(values)) : std::nullopt;
}

/// Nodes that only pass a tensor on keep its shape.
const ::onnx::TypeProto::Tensor* OnnxReading::type(const std::string& tensor) const {
  for (const std::string& name : {tensor, source(tensor)})
    if (const auto found = m_types.find(name); found != m_types.end()) return found->second;
  return nullptr;
}

/// Nearly all ops compute in the type of their first input; shapes begin with a Shape.
std::int32_t OnnxReading::elementTypeMadeBy(const ::onnx::NodeProto& node) const {
  if (node.op_type() == "Cast") return static_cast<std::int32_t>(integerOf(node, "to", 0));
  if (node.op_type() == "Shape" || node.op_type() == "Size") return ::onnx::TensorProto::INT64;
  constexpr std::array kComparisons = {"Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal", "Not", "And", "Or"};
  if (std::ranges::find(kComparisons, node.op_type()) != kComparisons.end()) return ::onnx::TensorProto::BOOL;
  return elementType(inputOf(node, node.op_type() == "Where" ? 1 : 0));
}

std::int32_t OnnxReading::elementType(const std::string& tensor) const {
  if (const auto found = m_types.find(tensor); found != m_types.end()) return found->second->elem_type();
  if (const auto found = m_constants.find(tensor); found != m_constants.end()) return found->second->data_type();
  const auto found = m_elementTypes.find(tensor);
  return found == m_elementTypes.end() ? 0 : found->second;
}

std::optional<DType> OnnxReading::readAs(const std::string& tensor) const {
  const auto found = m_readAs.find(tensor);
  return found == m_readAs.end() ? std::nullopt : found->second;
}

std::optional<std::int64_t> OnnxReading::axisFromEnd(const std::string& tensor, std::int64_t axis) const {
  if (axis < 0) return axis;
  const auto* const found = type(tensor);
  return found ? std::optional(axis - found->shape().dim_size()) : std::nullopt;
}

bool OnnxReading::isNumber(const std::string& tensor, double value) const {
  const ::onnx::TensorProto* const proto = constant(tensor);
  const std::optional<double> found = number(tensor);
  if (!found) return false;
  const auto isRounded = [&](DType dtype) {
    return (proto->data_type() == onnxType(dtype) || has(dtype)) && *found == rounded(value, dtype);
  };
  return static_cast<float>(*found) == static_cast<float>(value) || isRounded(DType::BF16) || isRounded(DType::F16);
}

bool OnnxReading::has(DType dtype) const { return m_typesOfModel.contains(onnxType(dtype)); }

bool OnnxReading::isMixed() const {
  return std::ranges::count_if(m_typesOfModel, [](std::int32_t type) { return floatTypeOf(type).has_value(); }) > 1;
}

double OnnxReading::roundingOf(const std::string& number) const {
  constexpr double kOfF32 = 5e-7;  // eight decimals, as in many models
  constexpr double kOfF16 = 0x1p-11, kOfBf16 = 0x1p-8;
  const ::onnx::TensorProto* const proto = constant(number);
  if (!proto) return kOfF32;
  const std::optional<double> value = this->number(number);
  const auto isRoundedTo = [&](DType dtype) {
    if (proto->data_type() == onnxType(dtype)) return true;
    return has(dtype) && value && *value == rounded(*value, dtype);
  };
  if (isRoundedTo(DType::BF16)) return kOfBf16;
  return isRoundedTo(DType::F16) ? kOfF16 : kOfF32;
}

bool isExactIn(const ::onnx::TensorProto& constant, DType dtype) {
  const auto elements = elementsOf(constant);
  if (!elements) return true;
  const Shape shape = {static_cast<std::int64_t>(elements->size())};
  const auto rounded = Tensor::fromDoubles({.dtype = dtype, .shape = shape}, *elements).toDoubles();
  return rounded == *elements;
}

/// As in source(), there may be rings.
bool OnnxReading::isRequantized(const std::string& tensor) const {
  const std::string* name = &tensor;
  for (std::size_t steps = 0; steps <= m_sources.size(); ++steps) {
    const auto made = m_makers.find(*name);
    const ::onnx::NodeProto* const node = made == m_makers.end() ? nullptr : &m_graph.node(made->second);
    if (!node || node->input_size() == 0 || !passedOn(*node)) return false;
    if (node->op_type() == "DequantizeLinear") return true;
    name = &node->input(0);
  }
  return false;
}

}  // namespace fuseline
