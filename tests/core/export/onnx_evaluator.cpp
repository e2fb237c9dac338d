// Source: https://onnx.ai/onnx/operators, opset 20. Casts and quantization to float8 do not round here.
// SPDX-License-Identifier: Apache-2.0
#include "tests/core/export/onnx_evaluator.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numbers>
#include <numeric>
#include <stdexcept>

namespace fuseline::testing {

namespace {

using Tensors = std::vector<ReferenceTensor>;
using Scalars = const std::vector<double>&;

// ---- shapes

std::int64_t axisOf(std::int64_t axis, const Shape& shape) {
  return axis < 0 ? axis + static_cast<std::int64_t>(shape.size()) : axis;
}

/// Number of elements before an axis, of the axis, and after it.
struct Around {
  std::int64_t outer = 1, extent = 1, inner = 1;
};

Around around(const Shape& shape, std::int64_t axis) {
  const auto at = static_cast<std::size_t>(axisOf(axis, shape));
  Around result{.extent = shape.at(at)};
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (i != at) (i < at ? result.outer : result.inner) *= shape[i];
  return result;
}

Shape broadcastShape(const Tensors& inputs) {
  Shape shape;
  for (const ReferenceTensor& input : inputs) {
    const Shape& other = input.shape;
    if (other.size() > shape.size()) shape.insert(shape.begin(), other.size() - shape.size(), 1);
    for (std::size_t i = 0; i < other.size(); ++i) {
      std::int64_t& extent = shape[shape.size() - other.size() + i];
      if (extent != 1 && other[i] != 1 && extent != other[i]) throw std::invalid_argument("shapes do not broadcast");
      extent = extent == 1 ? other[i] : extent;
    }
  }
  return shape;
}

/// Index in an operand of an element of the broadcast shape.
std::size_t sourceIndex(std::int64_t index, const Shape& shape, const Shape& operand) {
  std::int64_t source = 0, stride = 1;
  for (std::size_t i = shape.size(); i-- > 0; index /= shape[i]) {
    if (shape.size() - i > operand.size()) continue;
    const std::int64_t extent = operand[i + operand.size() - shape.size()];
    source += extent == 1 ? 0 : index % shape[i] * stride;
    stride *= extent;
  }
  return static_cast<std::size_t>(source);
}

ReferenceTensor elementwise(const Tensors& inputs, const std::function<double(Scalars)>& function) {
  ReferenceTensor result{.shape = broadcastShape(inputs)};
  std::vector<double> operands(inputs.size());
  for (std::int64_t i = 0; i < numElements(result.shape); ++i) {
    for (std::size_t k = 0; k < inputs.size(); ++k)
      operands[k] = inputs[k].values.at(sourceIndex(i, result.shape, inputs[k].shape));
    result.values.push_back(function(operands));
  }
  return result;
}

// ---- ops that move elements

ReferenceTensor taken(const ReferenceTensor& x, std::int64_t axis, std::int64_t first, std::int64_t count) {
  const Around a = around(x.shape, axis);
  ReferenceTensor result{.shape = x.shape};
  result.shape[static_cast<std::size_t>(axisOf(axis, x.shape))] = count;
  for (std::int64_t outer = 0; outer < a.outer; ++outer) {
    const auto from = x.values.begin() + (outer * a.extent + first) * a.inner;
    result.values.insert(result.values.end(), from, from + count * a.inner);
  }
  return result;
}

ReferenceTensor withoutAxis(ReferenceTensor x, std::int64_t axis) {
  x.shape.erase(x.shape.begin() + axisOf(axis, x.shape));
  return x;
}

ReferenceTensor concatenated(const Tensors& parts, std::int64_t axis) {
  ReferenceTensor result{.shape = parts[0].shape};
  std::int64_t& extent = result.shape[static_cast<std::size_t>(axisOf(axis, result.shape))];
  extent = 0;
  for (const ReferenceTensor& part : parts) extent += around(part.shape, axis).extent;
  for (std::int64_t outer = 0; outer < around(parts[0].shape, axis).outer; ++outer)
    for (const ReferenceTensor& part : parts) {
      const Around a = around(part.shape, axis);
      const auto from = part.values.begin() + outer * a.extent * a.inner;
      result.values.insert(result.values.end(), from, from + a.extent * a.inner);
    }
  return result;
}

ReferenceTensor reshaped(const ReferenceTensor& x, const ReferenceTensor& wanted, bool allowsZero) {
  ReferenceTensor result{.values = x.values};
  std::int64_t known = 1;
  for (std::size_t i = 0; i < wanted.values.size(); ++i) {
    const auto extent = static_cast<std::int64_t>(wanted.values[i]);
    result.shape.push_back(extent == 0 && !allowsZero ? x.shape.at(i) : extent);
    if (result.shape.back() != -1) known *= result.shape.back();
  }
  std::ranges::replace(result.shape, -1, known == 0 ? 0 : numElements(x.shape) / known);
  if (numElements(result.shape) != numElements(x.shape)) throw std::invalid_argument("Reshape: other elements");
  return result;
}

ReferenceTensor transposed(const ReferenceTensor& x) {
  ReferenceTensor result{.shape = {x.shape.at(1), x.shape.at(0)}};
  for (std::int64_t col = 0; col < x.shape[1]; ++col)
    for (std::int64_t row = 0; row < x.shape[0]; ++row)
      result.values.push_back(x.values[static_cast<std::size_t>(row * x.shape[1] + col)]);
  return result;
}

// ---- ops that sum

/// a: [..., K], b: [K, N].
ReferenceTensor product(const ReferenceTensor& a, const ReferenceTensor& b) {
  const std::int64_t K = b.shape.at(0), N = b.shape.at(1);
  if (a.cols() != K) throw std::invalid_argument("MatMul: other extents");
  ReferenceTensor result{.shape = a.shape};
  result.shape.back() = N;
  for (std::int64_t row = 0; row < result.rows(); ++row)
    for (std::int64_t col = 0; col < N; ++col) {
      double sum = 0.0;
      for (std::int64_t k = 0; k < K; ++k)
        sum += a.values[static_cast<std::size_t>(row * K + k)] * b.values[static_cast<std::size_t>(k * N + col)];
      result.values.push_back(sum);
    }
  return result;
}

/// Reduces the last axes, each to an extent of 1.
ReferenceTensor reduced(const ReferenceTensor& x, std::size_t numAxes,
                        const std::function<double(std::span<const double>)>& reduction) {
  ReferenceTensor result{.shape = x.shape};
  std::fill(result.shape.end() - static_cast<std::ptrdiff_t>(numAxes), result.shape.end(), 1);
  const std::int64_t rows = numElements(result.shape);
  const auto n = static_cast<std::size_t>(rows == 0 ? 0 : numElements(x.shape) / rows);
  for (std::int64_t row = 0; row < rows; ++row)
    result.values.push_back(reduction({x.values.data() + static_cast<std::size_t>(row) * n, n}));
  return result;
}

double sumOf(std::span<const double> values) { return std::accumulate(values.begin(), values.end(), 0.0); }
double meanOf(std::span<const double> values) { return sumOf(values) / static_cast<double>(values.size()); }
double largestOf(std::span<const double> values) { return *std::ranges::max_element(values); }
double logSumExpOf(std::span<const double> values) {
  return std::log(std::accumulate(values.begin(), values.end(), 0.0,
                                  [](double sum, double value) { return sum + std::exp(value); }));
}

ReferenceTensor layerNormalized(const Tensors& inputs, std::size_t numAxes, double epsilon) {
  const ReferenceTensor& x = inputs[0];
  const ReferenceTensor mean = reduced(x, numAxes, meanOf);
  const ReferenceTensor centred = elementwise({x, mean}, [](Scalars v) { return v[0] - v[1]; });
  const ReferenceTensor squares = elementwise({centred}, [](Scalars v) { return v[0] * v[0]; });
  const ReferenceTensor variance = reduced(squares, numAxes, meanOf);
  return elementwise({centred, variance, inputs[1], inputs[2]},
                     [=](Scalars v) { return v[0] / std::sqrt(v[1] + epsilon) * v[2] + v[3]; });
}

// ---- ops of routing

std::size_t at(double index) { return static_cast<std::size_t>(index); }

/// Largest first; of equal values the lower index comes first.
Tensors largest(const ReferenceTensor& x, std::int64_t count) {
  ReferenceTensor values{.shape = x.shape}, indices;
  values.shape.back() = count;
  for (std::int64_t row = 0; row < x.rows(); ++row) {
    const double* const from = x.values.data() + row * x.cols();
    std::vector<std::int64_t> order(at(static_cast<double>(x.cols())));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater(), [&](std::int64_t col) { return from[col]; });
    for (std::int64_t i = 0; i < count; ++i) {
      values.values.push_back(from[order[static_cast<std::size_t>(i)]]);
      indices.values.push_back(static_cast<double>(order[static_cast<std::size_t>(i)]));
    }
  }
  indices.shape = values.shape;
  return {values, indices};
}

ReferenceTensor oneHot(const ReferenceTensor& indices, const ReferenceTensor& depth) {
  ReferenceTensor result{.shape = indices.shape};
  result.shape.push_back(static_cast<std::int64_t>(depth.values[0]));
  for (const double index : indices.values)
    for (double col = 0.0; col < depth.values[0]; ++col) result.values.push_back(col == index ? 1.0 : 0.0);
  return result;
}

/// Along the last axis.
ReferenceTensor ofIndices(const ReferenceTensor& x, const ReferenceTensor& indices) {
  ReferenceTensor result{.shape = indices.shape};
  for (std::size_t i = 0; i < indices.values.size(); ++i) {
    const std::size_t row = i / static_cast<std::size_t>(indices.cols());
    result.values.push_back(x.values.at(row * static_cast<std::size_t>(x.cols()) + at(indices.values[i])));
  }
  return result;
}

/// Along the first axis.
ReferenceTensor rowsOf(const ReferenceTensor& x, const ReferenceTensor& indices) {
  ReferenceTensor result{.shape = indices.shape};
  result.shape.insert(result.shape.end(), x.shape.begin() + 1, x.shape.end());
  const std::size_t size = x.values.size() / at(static_cast<double>(x.shape[0]));
  for (const double index : indices.values)
    for (std::size_t i = 0; i < size; ++i) result.values.push_back(x.values.at(at(index) * size + i));
  return result;
}

/// Sums of the elements before each, along the first axis.
ReferenceTensor sumsBefore(ReferenceTensor x) {
  const std::size_t size = x.values.size() / at(static_cast<double>(x.shape[0]));
  std::vector<double> sums(size);
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const double value = x.values[i];
    x.values[i] = sums[i % size];
    sums[i % size] += value;
  }
  return x;
}

ReferenceTensor scattered(ReferenceTensor into, const ReferenceTensor& rows, const ReferenceTensor& updates) {
  const auto size = static_cast<std::size_t>(updates.cols());
  for (std::size_t i = 0; i < rows.values.size(); ++i)
    std::copy_n(updates.values.begin() + static_cast<std::ptrdiff_t>(i * size), size,
                into.values.begin() + static_cast<std::ptrdiff_t>(at(rows.values[i]) * size));
  return into;
}

/// One axis after another; they do not stay.
ReferenceTensor summed(ReferenceTensor x, std::vector<double> axes) {
  for (double& axis : axes) axis = static_cast<double>(axisOf(static_cast<std::int64_t>(axis), x.shape));
  std::ranges::sort(axes, std::greater());
  for (const double axis : axes) {
    const auto index = static_cast<std::int64_t>(axis);
    ReferenceTensor sum{.shape = x.shape};
    sum.shape[static_cast<std::size_t>(index)] = 1;
    sum.values.assign(static_cast<std::size_t>(numElements(sum.shape)), 0.0);
    for (std::int64_t i = 0; i < around(x.shape, index).extent; ++i)
      sum = elementwise({sum, taken(x, index, i, 1)}, [](Scalars v) { return v[0] + v[1]; });
    x = withoutAxis(std::move(sum), index);
  }
  return x;
}

ReferenceTensor softmax(const ReferenceTensor& x) {
  const ReferenceTensor powers = elementwise({x}, [](Scalars v) { return std::exp(v[0]); });
  return elementwise({powers, reduced(powers, 1, sumOf)}, [](Scalars v) { return v[0] / v[1]; });
}

ReferenceTensor expanded(const ReferenceTensor& x, const ReferenceTensor& wanted) {
  ReferenceTensor ones{.shape = {wanted.values.begin(), wanted.values.end()}};
  ones.values.assign(at(static_cast<double>(numElements(ones.shape))), 1.0);
  return elementwise({x, ones}, [](Scalars v) { return v[0]; });
}

// ---- the table of functions

double gelu(double x) {
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

const std::map<std::string, std::function<double(Scalars)>>& functions() {
  static const std::map<std::string, std::function<double(Scalars)>> all = {
      {"Identity", [](Scalars v) { return v[0]; }},
      {"Cast", [](Scalars v) { return v[0]; }},
      {"Add", [](Scalars v) { return v[0] + v[1]; }},
      {"Sub", [](Scalars v) { return v[0] - v[1]; }},
      {"Mul", [](Scalars v) { return v[0] * v[1]; }},
      {"Div", [](Scalars v) { return v[0] / v[1]; }},
      {"Max", [](Scalars v) { return std::max(v[0], v[1]); }},
      {"Min", [](Scalars v) { return std::min(v[0], v[1]); }},
      {"Less", [](Scalars v) { return v[0] < v[1] ? 1.0 : 0.0; }},
      {"Greater", [](Scalars v) { return v[0] > v[1] ? 1.0 : 0.0; }},
      {"IsNaN", [](Scalars v) { return std::isnan(v[0]) ? 1.0 : 0.0; }},
      {"Where", [](Scalars v) { return v[0] != 0.0 ? v[1] : v[2]; }},
      {"Abs", [](Scalars v) { return std::abs(v[0]); }},
      {"Neg", [](Scalars v) { return -v[0]; }},
      {"Exp", [](Scalars v) { return std::exp(v[0]); }},
      {"Log", [](Scalars v) { return std::log(v[0]); }},
      {"Sqrt", [](Scalars v) { return std::sqrt(v[0]); }},
      {"Reciprocal", [](Scalars v) { return 1.0 / v[0]; }},
      {"Tanh", [](Scalars v) { return std::tanh(v[0]); }},
      {"Sigmoid", [](Scalars v) { return 1.0 / (1.0 + std::exp(-v[0])); }},
      {"Softplus", [](Scalars v) { return std::log1p(std::exp(v[0])); }},
      {"Erf", [](Scalars v) { return std::erf(v[0]); }},
      {"Gelu tanh", [](Scalars v) { return gelu(v[0]); }},
      {"Gelu none", [](Scalars v) { return 0.5 * v[0] * std::erfc(-v[0] / std::numbers::sqrt2); }},
      {"QuantizeLinear", [](Scalars v) { return v[0] / v[1]; }},
      {"DequantizeLinear", [](Scalars v) { return v[0] * v[1]; }},
  };
  return all;
}

// ---- nodes

const ::onnx::AttributeProto* find(const ::onnx::NodeProto& node, std::string_view name) {
  for (const auto& attribute : node.attribute())
    if (attribute.name() == name) return &attribute;
  return nullptr;
}

std::int64_t integer(const ::onnx::NodeProto& node, std::string_view name, std::int64_t otherwise) {
  const auto* const attribute = find(node, name);
  return attribute ? attribute->i() : otherwise;
}

Tensors parts(const ::onnx::NodeProto& node, const Tensors& inputs) {
  const std::int64_t axis = integer(node, "axis", 0);
  std::vector<double> sizes(static_cast<std::size_t>(node.output_size()));
  if (inputs.size() > 1)
    sizes = inputs[1].values;
  else
    std::ranges::fill(sizes, static_cast<double>(around(inputs[0].shape, axis).extent / node.output_size()));
  Tensors result;
  std::int64_t first = 0;
  for (const double size : sizes) {
    result.push_back(taken(inputs[0], axis, first, static_cast<std::int64_t>(size)));
    first += static_cast<std::int64_t>(size);
  }
  return result;
}

ReferenceTensor shapeOf(const ::onnx::NodeProto& node, const Shape& shape) {
  const auto end = axisOf(integer(node, "end", static_cast<std::int64_t>(shape.size())), shape);
  return {.shape = {end}, .values = {shape.begin(), shape.begin() + end}};
}

ReferenceTensor amax(const ::onnx::NodeProto& node, const Tensors& inputs) {
  ReferenceTensor result = reduced(inputs[0], inputs[0].shape.size(), largestOf);
  if (integer(node, "keepdims", 1) == 0) result.shape.clear();
  return result;
}

/// The op type; for Gelu followed by its approximation, which by the specification defaults to none.
std::string functionOf(const ::onnx::NodeProto& node) {
  if (node.op_type() != "Gelu") return node.op_type();
  const auto* const form = find(node, "approximate");
  return form ? "Gelu " + form->s() : "Gelu none";
}

/// Empty: another type.
Tensors routed(const ::onnx::NodeProto& node, const Tensors& inputs) {
  const std::string& type = node.op_type();
  if (type == "TopK") return largest(inputs[0], static_cast<std::int64_t>(inputs[1].values[0]));
  if (type == "OneHot") return {oneHot(inputs[0], inputs[1])};
  if (type == "GatherElements") return {ofIndices(inputs[0], inputs[1])};
  if (type == "CumSum") return {sumsBefore(inputs[0])};
  if (type == "ScatterND") return {scattered(inputs[0], inputs[1], inputs[2])};
  if (type == "Softmax") return {softmax(inputs[0])};
  if (type == "Expand") return {expanded(inputs[0], inputs[1])};
  if (type == "Slice") {
    const auto first = static_cast<std::int64_t>(inputs[1].values[0]),
               end = static_cast<std::int64_t>(inputs[2].values[0]);
    return {taken(inputs[0], 0, first, end - first)};
  }
  if (type == "ReduceSum" && integer(node, "keepdims", 1) == 0) return {summed(inputs[0], inputs[1].values)};
  if (type == "Gather" && integer(node, "axis", 0) == 0 && !inputs[1].shape.empty())
    return {rowsOf(inputs[0], inputs[1])};
  return {};
}

Tensors computed(const ::onnx::NodeProto& node, Tensors inputs) {
  if (Tensors found = routed(node, inputs); !found.empty()) return found;
  const std::string& type = node.op_type();
  if (type.ends_with("QuantizeLinear")) inputs.resize(std::min<std::size_t>(inputs.size(), 2));  // no zero point
  if (const auto found = functions().find(functionOf(node)); found != functions().end())
    return {elementwise(inputs, found->second)};
  if (type == "MatMul") return {product(inputs[0], inputs[1])};
  if (type == "Transpose") return {transposed(inputs[0])};
  if (type == "Split") return parts(node, inputs);
  if (type == "Concat") return {concatenated(inputs, integer(node, "axis", 0))};
  if (type == "Reshape") return {reshaped(inputs[0], inputs[1], integer(node, "allowzero", 0) != 0)};
  if (type == "Shape") return {shapeOf(node, inputs[0].shape)};
  if (type == "ReduceMean") return {reduced(inputs[0], inputs[1].values.size(), meanOf)};
  if (type == "ReduceSum") return {reduced(inputs[0], inputs[1].values.size(), sumOf)};
  if (type == "ReduceMax") return {amax(node, inputs)};
  if (type == "ReduceLogSumExp") return {reduced(inputs[0], inputs[1].values.size(), logSumExpOf)};
  if (type == "LayerNormalization")
    return {layerNormalized(inputs, static_cast<std::size_t>(-integer(node, "axis", -1)),
                            static_cast<double>(find(node, "epsilon")->f()))};
  if (type == "Gather") {
    const std::int64_t axis = axisOf(integer(node, "axis", 0), inputs[0].shape);
    return {withoutAxis(taken(inputs[0], axis, static_cast<std::int64_t>(inputs[1].values.at(0)), 1), axis)};
  }
  if (type == "Squeeze") {
    std::erase(inputs[0].shape, 1);
    return {inputs[0]};
  }
  if (type == "Unsqueeze") {
    inputs[0].shape.push_back(1);  // for the axis -1
    return {inputs[0]};
  }
  throw std::invalid_argument("no export writes " + type);
}

template <class T>
std::vector<double> numbersIn(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return {values.begin(), values.end()};
}

ReferenceTensor constant(const ::onnx::TensorProto& proto) {
  ReferenceTensor tensor{.shape = {proto.dims().begin(), proto.dims().end()}};
  const bool isInteger = proto.data_type() == ::onnx::TensorProto::INT64;
  tensor.values = isInteger ? numbersIn<std::int64_t>(proto.raw_data()) : numbersIn<float>(proto.raw_data());
  return tensor;
}

}  // namespace

OnnxTensors evaluate(const ::onnx::GraphProto& graph, OnnxTensors given) {
  for (const auto& initializer : graph.initializer())
    if (!initializer.raw_data().empty()) given.emplace(initializer.name(), constant(initializer));
  for (const auto& node : graph.node()) {
    Tensors inputs;
    for (const std::string& input : node.input()) inputs.push_back(given.at(input));
    const Tensors outputs = computed(node, std::move(inputs));
    for (int i = 0; i < node.output_size(); ++i) given[node.output(i)] = outputs.at(static_cast<std::size_t>(i));
  }
  return given;
}

}  // namespace fuseline::testing
