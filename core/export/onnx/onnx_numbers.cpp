// In double precision: masks are exact in it, and tables of angles are compared with tolerances.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_numbers.h"

#include "core/export/onnx/import/number_functions.h"
#include "core/export/onnx/onnx_weights.h"
#include "core/lowering/expression.h"
#include "core/tensor/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace fuseline {

namespace {

using ProtoType = ::onnx::TensorProto;

constexpr int kDeepestNumber = 200;

NumberArrayPtr arrayOf(Shape shape, std::vector<double> values) {
  return std::make_shared<const NumberArray>(NumberArray{std::move(shape), std::move(values)});
}

template <class T>
std::vector<double> decodedAs(const std::vector<std::byte>& bytes) {
  std::vector<double> values(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T element;
    std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(element);
  }
  return values;
}

std::optional<std::vector<double>> decodedElements(const ::onnx::TensorProto& tensor,
                                                   const std::vector<std::byte>& bytes) {
  switch (tensor.data_type()) {
    case ProtoType::DOUBLE: return decodedAs<double>(bytes);
    case ProtoType::INT64: return decodedAs<std::int64_t>(bytes);
    case ProtoType::INT32: return decodedAs<std::int32_t>(bytes);
    case ProtoType::BOOL: return decodedAs<std::uint8_t>(bytes);
    default: break;
  }
  const std::optional<DType> dtype = floatTypeOf(tensor.data_type());
  if (!dtype) return integersIn(tensor, bytes);
  return Tensor{.spec = {.dtype = *dtype, .shape = shapeOf(tensor)}, .data = bytes}.toDoubles();
}

// ---- elementwise

double quotient(double a, double b, bool isInteger) { return isInteger && b != 0.0 ? std::trunc(a / b) : a / b; }

std::optional<double> ofTwo(const std::string& type, double a, double b, bool isInteger) {
  if (type == "Add") return a + b;
  if (type == "Sub") return a - b;
  if (type == "Mul") return a * b;
  if (type == "Div") return quotient(a, b, isInteger);
  if (type == "Pow") return std::pow(a, b);
  if (type == "Mod") return b == 0.0 ? 0.0 : a - std::floor(a / b) * b;
  if (type == "Min") return std::min(a, b);
  if (type == "Max") return std::max(a, b);
  if (type == "And") return a != 0.0 && b != 0.0 ? 1.0 : 0.0;
  if (type == "Or") return a != 0.0 || b != 0.0 ? 1.0 : 0.0;
  if (type == "Xor") return (a != 0.0) != (b != 0.0) ? 1.0 : 0.0;
  if (type == "Equal") return a == b ? 1.0 : 0.0;
  if (type == "Less") return a < b ? 1.0 : 0.0;
  if (type == "LessOrEqual") return a <= b ? 1.0 : 0.0;
  if (type == "Greater") return a > b ? 1.0 : 0.0;
  if (type == "GreaterOrEqual") return a >= b ? 1.0 : 0.0;
  return std::nullopt;
}

std::optional<double> ofOne(const std::string& type, double a) {
  if (type == "Neg") return -a;
  if (type == "Abs") return std::abs(a);
  if (type == "Not") return a == 0.0 ? 1.0 : 0.0;
  if (type == "Sqrt") return std::sqrt(a);
  if (type == "Reciprocal") return 1.0 / a;
  if (type == "Cos") return std::cos(a);
  if (type == "Sin") return std::sin(a);
  if (type == "Exp") return std::exp(a);
  if (type == "Log") return std::log(a);
  if (type == "Tanh") return std::tanh(a);
  if (type == "Sigmoid") return 1.0 / (1.0 + std::exp(-a));
  if (type == "Relu") return std::max(a, 0.0);
  if (type == "Erf") return std::erf(a);
  if (type == "Softplus") return std::log1p(std::exp(-std::abs(a))) + std::max(a, 0.0);
  if (type == "IsNaN") return std::isnan(a) ? 1.0 : 0.0;
  if (type == "Floor") return std::floor(a);
  if (type == "Sign") return a > 0.0 ? 1.0 : a < 0.0 ? -1.0 : 0.0;
  if (type == "Identity" || type == "Dropout") return a;
  return std::nullopt;
}

NumberArrayPtr elementwise(const std::string& type, const NumberArrayPtr& a, const NumberArrayPtr& b, bool isInteger) {
  const auto shape = broadcastShape(a->shape, b->shape);
  if (!shape || !ofTwo(type, 1.0, 1.0, isInteger)) return nullptr;
  std::vector<double> values(static_cast<std::size_t>(numElements(*shape)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = *ofTwo(type, broadcastAt(*a, *shape, static_cast<std::int64_t>(i)),
                       broadcastAt(*b, *shape, static_cast<std::int64_t>(i)), isInteger);
  return arrayOf(*shape, std::move(values));
}

NumberArrayPtr where(const NumberArrayPtr& condition, const NumberArrayPtr& yes, const NumberArrayPtr& no) {
  const auto both = broadcastShape(yes->shape, no->shape);
  const auto shape = both ? broadcastShape(*both, condition->shape) : std::nullopt;
  if (!shape) return nullptr;
  std::vector<double> values(static_cast<std::size_t>(numElements(*shape)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i);
    values[i] = broadcastAt(broadcastAt(*condition, *shape, place) != 0.0 ? *yes : *no, *shape, place);
  }
  return arrayOf(*shape, std::move(values));
}

/// Each input in turn: a Max or Sum has any number.
NumberArrayPtr accumulated(const std::string& type, const std::vector<NumberArrayPtr>& inputs) {
  if (std::ranges::any_of(inputs, [](const NumberArrayPtr& input) { return !input; })) return nullptr;
  NumberArrayPtr all = inputs.front();
  for (std::size_t i = 1; i < inputs.size() && all; ++i) all = elementwise(type, all, inputs[i], false);
  return all;
}

double converted(double value, std::int64_t type) {
  if (type == ProtoType::BOOL) return value != 0.0 ? 1.0 : 0.0;
  return type == ProtoType::INT64 || type == ProtoType::INT32 ? std::trunc(value) : value;
}

/// Limits are inputs since opset 11, attributes before.
double clipped(const ::onnx::NodeProto& node, double value, const std::vector<double>& low,
               const std::vector<double>& high) {
  constexpr double kMost = std::numeric_limits<double>::infinity();
  const double least = low.empty() ? realOf(node, "min", -kMost) : low.front();
  return std::min(std::max(value, least), high.empty() ? realOf(node, "max", kMost) : high.front());
}

template <class Function>
NumberArrayPtr mapped(const NumberArrayPtr& x, Function f) {
  std::vector<double> values = x->values;
  for (double& value : values) value = f(value);
  return arrayOf(x->shape, std::move(values));
}

// ---- movements of elements

Shape stridesOf(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

/// y[i, j ..] = x[origin + i * strides[0] + j * strides[1] ..].
NumberArrayPtr strided(const NumberArrayPtr& x, Shape shape, const Shape& strides, std::int64_t origin) {
  if (numElements(shape) > kMostNumbers) return nullptr;
  std::vector<double> values(static_cast<std::size_t>(numElements(shape)));
  Shape place(shape.size(), 0);
  for (double& value : values) {
    std::int64_t at = origin;
    for (std::size_t i = 0; i < place.size(); ++i) at += place[i] * strides[i];
    if (at < 0 || at >= static_cast<std::int64_t>(x->values.size())) return nullptr;
    value = x->values[static_cast<std::size_t>(at)];
    for (std::size_t i = place.size(); i-- > 0;) {
      if (++place[i] < shape[i]) break;
      place[i] = 0;
    }
  }
  return arrayOf(std::move(shape), std::move(values));
}

NumberArrayPtr transposed(const ::onnx::NodeProto& node, const NumberArrayPtr& x) {
  const Shape from = stridesOf(x->shape);
  Shape shape, strides;
  const auto* const perm = findAttribute(node, "perm");
  for (std::size_t i = 0; i < x->shape.size(); ++i) {
    const std::int64_t axis = perm && perm->ints_size() > static_cast<int>(i)
                                  ? perm->ints(static_cast<int>(i))
                                  : static_cast<std::int64_t>(x->shape.size() - 1 - i);
    if (axis < 0 || axis >= static_cast<std::int64_t>(x->shape.size())) return nullptr;
    shape.push_back(x->shape[static_cast<std::size_t>(axis)]);
    strides.push_back(from[static_cast<std::size_t>(axis)]);
  }
  return strided(x, std::move(shape), strides, 0);
}

std::int64_t fromFront(std::int64_t axis, std::size_t rank) {
  return axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
}

NumberArrayPtr gathered(const NumberArrayPtr& x, const NumberArrayPtr& indices, std::int64_t given) {
  const std::int64_t axis = fromFront(given, x->shape.size());
  if (axis < 0 || axis >= static_cast<std::int64_t>(x->shape.size())) return nullptr;
  const auto place = static_cast<std::size_t>(axis);
  Shape shape(x->shape.begin(), x->shape.begin() + axis);
  shape.insert(shape.end(), indices->shape.begin(), indices->shape.end());
  shape.insert(shape.end(), x->shape.begin() + axis + 1, x->shape.end());
  if (numElements(shape) > kMostNumbers) return nullptr;
  const std::int64_t inner = stridesOf(x->shape)[place], extent = x->shape[place];
  const std::int64_t outer = extent * inner == 0 ? 0 : numElements(x->shape) / (extent * inner);
  std::vector<double> values;
  for (std::int64_t row = 0; row < outer; ++row)
    for (const double wanted : indices->values) {
      const std::int64_t index = static_cast<std::int64_t>(wanted) + (wanted < 0.0 ? extent : 0);
      if (index < 0 || index >= extent) return nullptr;
      const auto first = x->values.begin() + (row * extent + index) * inner;
      values.insert(values.end(), first, first + inner);
    }
  return arrayOf(std::move(shape), std::move(values));
}

NumberArrayPtr joined(const std::vector<NumberArrayPtr>& parts, std::int64_t given) {
  Shape shape = parts.front()->shape;
  const std::int64_t axis = fromFront(given, shape.size());
  if (axis < 0 || axis >= static_cast<std::int64_t>(shape.size())) return nullptr;
  const auto place = static_cast<std::size_t>(axis);
  shape[place] = 0;
  std::int64_t outer = 1;
  for (std::size_t i = 0; i < place; ++i) outer *= shape[i];
  for (const NumberArrayPtr& part : parts) {
    if (part->shape.size() != shape.size()) return nullptr;
    shape[place] += part->shape[place];
  }
  std::vector<double> values;
  for (std::int64_t row = 0; row < outer; ++row)
    for (const NumberArrayPtr& part : parts) {
      const std::int64_t size = numElements(part->shape) / std::max<std::int64_t>(outer, 1);
      const auto first = part->values.begin() + row * size;
      values.insert(values.end(), first, first + size);
    }
  if (static_cast<std::int64_t>(values.size()) != numElements(shape)) return nullptr;
  return arrayOf(std::move(shape), std::move(values));
}

/// One output of a Split.
NumberArrayPtr partOf(const ::onnx::NodeProto& node, const NumberArrayPtr& x, std::vector<double> sizes,
                      const std::string& output) {
  const std::int64_t axis = fromFront(integerOf(node, "axis", 0), x->shape.size());
  if (axis < 0 || axis >= static_cast<std::int64_t>(x->shape.size())) return nullptr;
  const auto place = static_cast<std::size_t>(axis);
  const auto* const attribute = findAttribute(node, "split");
  if (attribute) sizes.assign(attribute->ints().begin(), attribute->ints().end());
  const auto count = static_cast<std::int64_t>(node.output_size());
  const std::int64_t each = (x->shape[place] + count - 1) / count;  // the last part may be smaller
  std::int64_t first = 0;
  for (int i = 0; i < node.output_size(); ++i) {
    const auto index = static_cast<std::size_t>(i);
    const std::int64_t size =
        index < sizes.size() ? static_cast<std::int64_t>(sizes[index]) : std::min(each, x->shape[place] - first);
    if (node.output(i) == output) {
      Shape shape = x->shape;
      const Shape strides = stridesOf(shape);
      shape[place] = size;
      return size < 0 ? nullptr : strided(x, std::move(shape), strides, first * strides[place]);
    }
    first += size;
  }
  return nullptr;
}

NumberArrayPtr triangle(const NumberArrayPtr& x, std::int64_t k, bool isUpper) {
  if (x->shape.size() < 2) return nullptr;
  const std::int64_t cols = x->shape.back(), rows = x->shape[x->shape.size() - 2];
  std::vector<double> values = x->values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t col = static_cast<std::int64_t>(i) % cols, row = static_cast<std::int64_t>(i) / cols % rows;
    if (isUpper ? col < row + k : col > row + k) values[i] = 0.0;
  }
  return arrayOf(x->shape, std::move(values));
}

NumberArrayPtr product(const NumberArrayPtr& a, const NumberArrayPtr& b) {
  if (a->shape.size() < 2 || b->shape.size() < 2) return nullptr;
  const std::int64_t M = a->shape[a->shape.size() - 2], K = a->shape.back(), N = b->shape.back();
  if (b->shape[b->shape.size() - 2] != K || M == 0 || N == 0) return nullptr;
  const Shape leadA(a->shape.begin(), a->shape.end() - 2), leadB(b->shape.begin(), b->shape.end() - 2);
  const auto lead = broadcastShape(leadA, leadB);
  if (!lead) return nullptr;
  Shape shape = *lead;
  shape.insert(shape.end(), {M, N});
  if (numElements(shape) > kMostNumbers || numElements(shape) * std::max<std::int64_t>(K, 1) > kMostNumbers * 16)
    return nullptr;
  const auto numbered = [](const Shape& of) {
    NumberArray array{of, std::vector<double>(static_cast<std::size_t>(numElements(of)))};
    for (std::size_t i = 0; i < array.values.size(); ++i) array.values[i] = static_cast<double>(i);
    return array;
  };
  const NumberArray matricesA = numbered(leadA), matricesB = numbered(leadB);
  std::vector<double> values(static_cast<std::size_t>(numElements(shape)), 0.0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t col = at % N, row = at / N % M, matrix = at / (M * N);
    const auto rowOfA = (static_cast<std::int64_t>(broadcastAt(matricesA, *lead, matrix)) * M + row) * K;
    const auto rowOfB = static_cast<std::int64_t>(broadcastAt(matricesB, *lead, matrix)) * K;
    for (std::int64_t k = 0; k < K; ++k)
      values[i] +=
          a->values[static_cast<std::size_t>(rowOfA + k)] * b->values[static_cast<std::size_t>((rowOfB + k) * N + col)];
  }
  return arrayOf(std::move(shape), std::move(values));
}

NumberArrayPtr sliced(const NumberArrayPtr& x, const std::vector<double>& starts, const std::vector<double>& ends,
                      const std::vector<double>& axes, const std::vector<double>& steps) {
  Shape shape = x->shape, strides = stridesOf(shape);
  std::int64_t origin = 0;
  for (std::size_t i = 0; i < starts.size() && i < ends.size(); ++i) {
    const std::int64_t axis =
        fromFront(i < axes.size() ? static_cast<std::int64_t>(axes[i]) : static_cast<std::int64_t>(i), shape.size());
    const double step = i < steps.size() ? steps[i] : 1.0;
    if (axis < 0 || axis >= static_cast<std::int64_t>(shape.size()) || step < 1.0) return nullptr;
    const auto place = static_cast<std::size_t>(axis);
    const auto extent = static_cast<double>(shape[place]);
    const auto counted = [&](double at) {
      return static_cast<std::int64_t>(std::clamp(at < 0.0 ? at + extent : at, 0.0, extent));
    };
    const std::int64_t begin = counted(starts[i]), end = std::max(begin, counted(ends[i]));
    origin += begin * strides[place];
    shape[place] = (end - begin + static_cast<std::int64_t>(step) - 1) / static_cast<std::int64_t>(step);
    strides[place] *= static_cast<std::int64_t>(step);
  }
  return strided(x, std::move(shape), strides, origin);
}

Shape shapeFrom(const NumberArray& extents) {
  Shape shape;
  for (const double extent : extents.values) shape.push_back(static_cast<std::int64_t>(extent));
  return shape;
}

NumberArrayPtr filled(const NumberArray& extents, const NumberArrayPtr& fill) {
  const Shape shape = shapeFrom(extents);
  const bool isSmall =
      fill && std::ranges::all_of(shape, [](std::int64_t e) { return e >= 0; }) && numElements(shape) <= kMostNumbers;
  if (!isSmall || fill->values.empty()) return nullptr;
  return arrayOf(shape, std::vector<double>(static_cast<std::size_t>(numElements(shape)), fill->values.front()));
}

NumberArrayPtr expanded(const NumberArray& x, const NumberArray& extents) {
  const auto shape = broadcastShape(x.shape, shapeFrom(extents));
  if (!shape || numElements(*shape) == 0) return nullptr;
  std::vector<double> values(static_cast<std::size_t>(numElements(*shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = broadcastAt(x, *shape, static_cast<std::int64_t>(i));
  return arrayOf(*shape, std::move(values));
}

NumberArrayPtr ranged(double begin, double end, double step) {
  if (step == 0.0 || std::abs((end - begin) / step) > static_cast<double>(kMostNumbers)) return nullptr;
  std::vector<double> values;
  for (double at = begin; step > 0.0 ? at < end : at > end; at += step) values.push_back(at);
  const auto count = static_cast<std::int64_t>(values.size());
  return arrayOf({count}, std::move(values));
}

}  // namespace

std::optional<Shape> broadcastShape(const Shape& a, const Shape& b) {
  Shape shape(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t m = i < a.size() ? a[a.size() - 1 - i] : 1, n = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (m != n && m != 1 && n != 1) return std::nullopt;
    shape[shape.size() - 1 - i] = m == 1 ? n : m;
  }
  return numElements(shape) <= kMostNumbers ? std::optional(std::move(shape)) : std::nullopt;
}

double broadcastAt(const NumberArray& array, const Shape& extents, std::int64_t place) {
  std::int64_t at = 0, stride = 1;
  const std::size_t missing = extents.size() - array.shape.size();
  for (std::size_t i = extents.size(); i-- > 0; place /= std::max<std::int64_t>(extents[i], 1)) {
    if (i < missing) break;
    const std::int64_t extent = array.shape[i - missing];
    if (extent != 1) at += place % extents[i] * stride;
    stride *= extent;
  }
  return array.values[static_cast<std::size_t>(at)];
}

OnnxNumbers::OnnxNumbers(const OnnxReading& reading, std::map<std::string, std::int64_t> symbols,
                         std::filesystem::path folder)
    : m_reading(reading), m_symbols(std::move(symbols)), m_folder(std::move(folder)) {}

OnnxNumbers* OnnxNumbers::atOtherExtents() {
  if (m_other || m_isOther || m_symbols.empty()) return m_other.get();
  auto larger = m_symbols;
  std::map<std::int64_t, std::int64_t> factors;  // the last of symbols with this value
  for (auto& [name, value] : larger) value *= ++factors.try_emplace(value, 1).first->second;
  m_other = std::make_unique<OnnxNumbers>(m_reading, std::move(larger), m_folder);
  m_other->m_isOther = true;
  return m_other.get();
}

NumberArrayPtr OnnxNumbers::of(const std::string& tensor) { return find(tensor, 0); }

std::optional<double> OnnxNumbers::number(const std::string& tensor) {
  const NumberArrayPtr array = of(tensor);
  const auto value = array && array->values.size() == 1 ? std::optional(array->values.front()) : std::nullopt;
  OnnxNumbers* const other = value ? atOtherExtents() : nullptr;
  return !other || other->number(tensor) == value ? value : std::nullopt;
}

std::optional<Shape> OnnxNumbers::extents(const std::string& tensor) const {
  const auto* const type = m_reading.type(tensor);
  if (!type || !type->has_shape()) return std::nullopt;
  Shape shape;
  for (const auto& extent : type->shape().dim()) {
    const Result<std::int64_t> value =
        extent.has_dim_value() ? extent.dim_value() : evaluateExpression(extent.dim_param(), m_symbols);
    if (!value || *value < 0) return std::nullopt;
    shape.push_back(*value);
  }
  return shape;
}

NumberArrayPtr OnnxNumbers::constant(const ::onnx::TensorProto& tensor) const {
  if (numElements(shapeOf(tensor)) > kMostNumbers) return nullptr;
  const Result<std::vector<std::byte>> bytes = elementBytes(tensor, m_folder);
  auto values = bytes ? decodedElements(tensor, *bytes) : std::nullopt;
  if (!values || static_cast<std::int64_t>(values->size()) != numElements(shapeOf(tensor))) return nullptr;
  return arrayOf(shapeOf(tensor), std::move(*values));
}

NumberArrayPtr OnnxNumbers::find(const std::string& tensor, int depth) {
  const std::string& name = m_reading.source(tensor);
  const auto [entry, isNew] = m_known.try_emplace(name, nullptr);
  if (!isNew || depth > kDeepestNumber) return entry->second;
  NumberArrayPtr found;
  if (const auto* const proto = m_reading.constant(name))
    found = constant(*proto);
  else if (const auto* const node = m_reading.maker(name))
    found = compute(*node, name, depth + 1);
  return m_known[name] = found;
}

NumberArrayPtr OnnxNumbers::compute(const ::onnx::NodeProto& node, const std::string& output, int depth) {
  const std::string& type = node.op_type();
  if (!node.domain().empty() && node.domain() != "ai.onnx") return nullptr;
  if (type != "Split" && node.output(0) != output) return nullptr;
  if (type == "Shape") {
    const auto known = m_known.find(m_reading.source(inputOf(node, 0)));
    const bool isKnown = known != m_known.end() && known->second;
    const auto shape = isKnown ? std::optional(known->second->shape) : extents(inputOf(node, 0));
    return shape ? shapeNumbers(node, *shape) : nullptr;
  }
  std::vector<NumberArrayPtr> inputs;
  for (const std::string& input : node.input()) {
    inputs.push_back(input.empty() ? nullptr : find(input, depth));
    if (!input.empty() && !inputs.back()) return nullptr;
  }
  const auto has = [&](std::size_t index) {
    return index < inputs.size() && inputs[index] && !inputs[index]->values.empty();
  };
  if (type == "Concat" && !inputs.empty() && inputs.front()) return joined(inputs, integerOf(node, "axis", 0));
  if (!has(0)) return nullptr;
  const NumberArrayPtr& x = inputs[0];
  const auto list = [&](std::size_t index) { return has(index) ? inputs[index]->values : std::vector<double>(); };
  if (type == "Split") return partOf(node, x, list(1), output);
  if (inputs.size() == 1 && ofOne(type, 0.0)) return mapped(x, [&](double a) { return *ofOne(type, a); });
  if (type == "Cast") return mapped(x, [&](double a) { return converted(a, integerOf(node, "to", 0)); });
  if (type == "Clip") {
    const std::vector<double> low = list(1), high = list(2);
    return mapped(x, [&](double a) { return clipped(node, a, low, high); });
  }
  if (type == "Swish")
    return mapped(x, [&](double a) { return a / (1.0 + std::exp(-realOf(node, "alpha", 1.0) * a)); });
  if (type.starts_with("Reduce")) return reducedNumbers(node, *x, list(1));
  if (type == "DequantizeLinear" && has(1))
    return dequantizedNumbers(node, *x, *inputs[1], has(2) ? inputs[2].get() : nullptr);
  if (type == "Max" || type == "Min" || type == "Sum") return accumulated(type == "Sum" ? "Add" : type, inputs);
  if (type == "Transpose") return transposed(node, x);
  if (type == "ConstantOfShape") {
    const auto* const value = findAttribute(node, "value");
    return filled(*x, value ? constant(value->t()) : arrayOf({1}, {0.0}));
  }
  if (type == "Trilu")
    return triangle(x, has(1) ? static_cast<std::int64_t>(inputs[1]->values.front()) : 0,
                    integerOf(node, "upper", 1) != 0);
  if (type == "Slice" && has(2)) return sliced(x, list(1), list(2), list(3), list(4));
  if (type == "Reshape" || type == "Unsqueeze" || type == "Squeeze" || type == "Flatten") {
    auto shape = viewShape(node, x->shape, list(1));
    if (!shape) shape = extents(node.output(0));
    return shape && numElements(*shape) == numElements(x->shape) ? arrayOf(std::move(*shape), x->values) : nullptr;
  }
  if (!has(1)) return nullptr;
  if (type == "Gather") return gathered(x, inputs[1], integerOf(node, "axis", 0));
  if (type == "GatherND" && integerOf(node, "batch_dims", 0) == 0) return gatheredNumbers(*x, *inputs[1]);
  if (type == "CumSum") return cumulatedNumbers(node, *x, static_cast<std::int64_t>(inputs[1]->values.front()));
  if (type == "MatMul") return product(x, inputs[1]);
  if (type == "Expand") return expanded(*x, *inputs[1]);
  if (type == "Tile") return tiledNumbers(*x, inputs[1]->values);
  if (type == "Where" && has(2)) return where(x, inputs[1], inputs[2]);
  if (type == "Range" && has(2)) return ranged(x->values.front(), inputs[1]->values.front(), inputs[2]->values.front());
  const bool isInteger = !floatTypeOf(m_reading.elementType(inputOf(node, 0)));
  return inputs.size() == 2 ? elementwise(type, x, inputs[1], isInteger) : nullptr;
}

}  // namespace fuseline
