// Values of small integer tensors: the arithmetic by which exporters compute shapes.
// Source: github.com/onnx/onnx, docs/Operators.md.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_node_facts.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

namespace fuseline {

/// A separate name, because other files have rules of the same names.
namespace onnx_values {

namespace {

using Node = OnnxNodeFacts;
using Rule = void (*)(Node&);
using Tensor = ::onnx::TensorProto;
using Places = std::vector<std::int64_t>;
using MaybeArray = std::optional<OnnxArray>;

constexpr std::int64_t kMaxElements = 4096;

bool isFloat(std::int32_t type) {
  return type == Tensor::FLOAT || type == Tensor::FLOAT16 || type == Tensor::DOUBLE || type == Tensor::BFLOAT16;
}

// ---- places in arrays

std::int64_t countOf(const Places& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count) || count > kMaxElements) return kMaxElements + 1;
  return count;
}

/// The shape that setShape() stored for an output, if it is a small array.
std::optional<Places> smallShape(Node& node, std::size_t output) {
  if (output >= node.numOutputs()) return std::nullopt;
  const std::optional<OnnxExtents>& shape = node.outputs()[output].shape;
  if (!shape || !areNumbers(*shape)) return std::nullopt;
  Places places;
  for (const OnnxExtent& extent : *shape) places.push_back(*extent.number());
  return countOf(places) <= kMaxElements ? std::optional(places) : std::nullopt;
}

Places placeOf(std::int64_t index, const Places& shape) {
  Places place(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    place[axis] = index % shape[axis];
    index /= shape[axis];
  }
  return place;
}

std::int64_t indexOf(const Places& place, const Places& shape) {
  std::int64_t index = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) index = index * shape[axis] + place[axis];
  return index;
}

/// The element at this index when the array is broadcast to a larger shape. Axes are matched from the last one.
const OnnxExtent& repeatedAt(const OnnxArray& array, const Places& place) {
  Places own(array.shape.size());
  const std::size_t offset = place.size() - own.size();
  for (std::size_t axis = 0; axis < own.size(); ++axis)
    own[axis] = array.shape[axis] == 1 ? 0 : place[axis + offset] % array.shape[axis];
  return array.elements[static_cast<std::size_t>(indexOf(own, array.shape))];
}

/// Each element of an output by its place. element: OnnxExtent(const Places&).
template <class Function>
void fill(Node& node, std::size_t output, const Function& element) {
  const std::optional<Places> shape = smallShape(node, output);
  if (!shape) return;
  OnnxExtents elements;
  for (std::int64_t index = 0; index < countOf(*shape); ++index) {
    elements.push_back(element(placeOf(index, *shape)));
    if (elements.back().isUnknown()) return;
  }
  node.outputs()[output].values = std::move(elements);
}

/// An element of an array from another place; unknown outside of it.
OnnxExtent elementAt(const OnnxArray& array, const Places& place) {
  for (std::size_t axis = 0; axis < place.size(); ++axis)
    if (place[axis] < 0 || place[axis] >= array.shape[axis]) return OnnxExtent::unknown();
  return array.elements[static_cast<std::size_t>(indexOf(place, array.shape))];
}

// ---- elementwise

using Binary = OnnxExtent (*)(Node& node, const OnnxExtent& a, const OnnxExtent& b);

template <Binary combine>
void elementwise(Node& node) {
  std::vector<OnnxArray> arrays;
  for (std::size_t i = 0; i < node.numInputs(); ++i) {
    MaybeArray array = node.array(i);
    if (!array) return;
    arrays.push_back(std::move(*array));
  }
  if (arrays.empty()) return;
  fill(node, 0, [&](const Places& place) {
    OnnxExtent result = repeatedAt(arrays[0], place);
    for (std::size_t i = 1; i < arrays.size(); ++i) result = combine(node, result, repeatedAt(arrays[i], place));
    return result;
  });
}

OnnxExtent sum(Node&, const OnnxExtent& a, const OnnxExtent& b) { return a + b; }
OnnxExtent difference(Node&, const OnnxExtent& a, const OnnxExtent& b) { return a - b; }
OnnxExtent product(Node&, const OnnxExtent& a, const OnnxExtent& b) { return a * b; }

OnnxExtent quotient(Node& node, const OnnxExtent& a, const OnnxExtent& b) {
  if (isFloat(node.input(0).elementType)) return a.dividedBy(b).value_or(OnnxExtent::unknown());
  return node.symbols().quotient(a, b);
}

/// The sign of the divisor, as of Python; with fmod that of the dividend.
OnnxExtent remainder(Node& node, const OnnxExtent& a, const OnnxExtent& b) {
  const auto left = a.number(), right = b.number();
  if (!left || !right) {
    if (a.dividedBy(b)) return 0;
    node.symbols().needNumbers({a, b});
    return OnnxExtent::unknown();
  }
  if (*right == 0) return OnnxExtent::unknown();
  const std::int64_t rest = *left % *right;
  const bool isPython = node.integer("fmod", 0) == 0;
  return isPython && rest != 0 && (rest < 0) != (*right < 0) ? rest + *right : rest;
}

/// By the sign of the difference, where it is one for all symbols.
template <bool (*test)(int sign)>
OnnxExtent compared(Node& node, const OnnxExtent& a, const OnnxExtent& b) {
  if (const std::optional<int> sign = (a - b).sign()) return test(*sign) ? 1 : 0;
  node.symbols().needNumbers({a, b});
  return OnnxExtent::unknown();
}

template <bool takesLarger>
OnnxExtent extremum(Node& node, const OnnxExtent& a, const OnnxExtent& b) {
  if (const std::optional<int> sign = (a - b).sign()) return (*sign > 0) == takesLarger ? a : b;
  node.symbols().needNumbers({a, b});
  return OnnxExtent::unknown();
}

bool isEqual(int sign) { return sign == 0; }
bool isLess(int sign) { return sign < 0; }
bool isAtMost(int sign) { return sign <= 0; }
bool isGreater(int sign) { return sign > 0; }
bool isAtLeast(int sign) { return sign >= 0; }

template <bool (*test)(bool a, bool b)>
OnnxExtent logical(Node&, const OnnxExtent& a, const OnnxExtent& b) {
  const auto left = a.number(), right = b.number();
  return left && right ? OnnxExtent(test(*left != 0, *right != 0) ? 1 : 0) : OnnxExtent::unknown();
}

bool areBoth(bool a, bool b) { return a && b; }
bool isAny(bool a, bool b) { return a || b; }
bool areDifferent(bool a, bool b) { return a != b; }

/// Returns 2^62 for the end of a slice, which is no extent.
OnnxExtent power(Node&, const OnnxExtent& a, const OnnxExtent& b) {
  const std::optional<std::int64_t> exponent = b.number();
  if (!exponent || *exponent < 0 || *exponent > 62) return OnnxExtent::unknown();
  OnnxExtent result = 1;
  for (std::int64_t i = 0; i < *exponent; ++i) result = result * a;
  return result;
}

using Unary = OnnxExtent (*)(Node& node, const OnnxExtent& x);

template <Unary function>
void unary(Node& node) {
  const MaybeArray x = node.array(0);
  if (x) fill(node, 0, [&](const Places& place) { return function(node, repeatedAt(*x, place)); });
}

OnnxExtent same(Node&, const OnnxExtent& x) { return x; }
OnnxExtent negative(Node&, const OnnxExtent& x) { return x * OnnxExtent(-1); }

OnnxExtent opposite(Node&, const OnnxExtent& x) {
  return x.number() ? OnnxExtent(*x.number() == 0 ? 1 : 0) : OnnxExtent::unknown();
}

OnnxExtent signOf(Node&, const OnnxExtent& x) { return x.sign() ? OnnxExtent(*x.sign()) : OnnxExtent::unknown(); }

OnnxExtent magnitude(Node&, const OnnxExtent& x) {
  if (!x.sign()) return OnnxExtent::unknown();
  return *x.sign() < 0 ? x * OnnxExtent(-1) : x;
}

/// To a boolean: whether it is not 0.
OnnxExtent cast(Node& node, const OnnxExtent& x) {
  if (node.outputs()[0].elementType != Tensor::BOOL) return x;
  return x.sign() ? OnnxExtent(*x.sign() != 0 ? 1 : 0) : OnnxExtent::unknown();
}

void where(Node& node) {
  const MaybeArray condition = node.array(0), a = node.array(1), b = node.array(2);
  if (!condition || !a || !b) return;
  fill(node, 0, [&](const Places& place) {
    const auto chosen = repeatedAt(*condition, place).number();
    if (!chosen) return OnnxExtent::unknown();
    return *chosen != 0 ? repeatedAt(*a, place) : repeatedAt(*b, place);
  });
}

// ---- extents as values

void shapeOfInput(Node& node) {
  const std::optional<Places> own = smallShape(node, 0);
  if (!node.rank(0) || !own) return;
  const auto rank = static_cast<std::int64_t>(*node.rank(0));
  const std::int64_t start = node.integer("start", 0);
  const std::int64_t begin = std::clamp<std::int64_t>(start < 0 ? start + rank : start, 0, rank);
  fill(node, 0, [&](const Places& place) { return (*node.shape(0))[static_cast<std::size_t>(begin + place[0])]; });
}

void sizeOfInput(Node& node) {
  if (node.rank(0)) fill(node, 0, [&](const Places&) { return productOf(*node.shape(0)); });
}

void range(Node& node) {
  const auto start = node.input(0).values, step = node.input(2).values;
  if (!start || !step || start->size() != 1 || step->size() != 1) return;
  fill(node, 0, [&](const Places& place) { return start->front() + OnnxExtent(place[0]) * step->front(); });
}

// ---- movements

/// The same elements in another shape.
void reshaped(Node& node) {
  const MaybeArray x = node.array(0);
  const std::optional<Places> shape = smallShape(node, 0);
  if (x && shape && countOf(*shape) == static_cast<std::int64_t>(x->elements.size()))
    node.outputs()[0].values = x->elements;
}

void repeated(Node& node) {
  const MaybeArray x = node.array(0);
  const std::optional<Places> shape = smallShape(node, 0);
  if (x && shape && shape->size() >= x->shape.size())
    fill(node, 0, [&](const Places& place) { return repeatedAt(*x, place); });
}

void transposed(Node& node) {
  const MaybeArray x = node.array(0);
  if (!x) return;
  const Places order = node.integers("perm");
  fill(node, 0, [&](const Places& place) {
    Places from(place.size());
    for (std::size_t axis = 0; axis < place.size(); ++axis)
      from[order.empty() ? place.size() - 1 - axis : *axisOf(order[axis], place.size())] = place[axis];
    return elementAt(*x, from);
  });
}

void gathered(Node& node) {
  const MaybeArray x = node.array(0), indices = node.array(1);
  if (!x || !indices) return;
  const std::optional<std::size_t> axis = axisOf(node.integer("axis", 0), x->shape.size());
  if (!axis) return;
  const std::size_t depth = indices->shape.size();
  fill(node, 0, [&](const Places& place) {
    const auto at = place.begin() + static_cast<std::ptrdiff_t>(*axis);
    const OnnxExtent chosen = repeatedAt(*indices, Places(at, at + static_cast<std::ptrdiff_t>(depth)));
    node.symbols().needNumber(chosen);
    if (!chosen.number()) return OnnxExtent::unknown();
    Places from(place.begin(), at);
    from.push_back(*chosen.number() < 0 ? *chosen.number() + x->shape[*axis] : *chosen.number());
    from.insert(from.end(), at + static_cast<std::ptrdiff_t>(depth), place.end());
    return elementAt(*x, from);
  });
}

void sliced(Node& node) {
  const MaybeArray x = node.array(0);
  const auto starts = node.numbers(1, "starts"), axes = node.numbers(3, "axes"), steps = node.numbers(4, "steps");
  if (!x || !starts || (node.has(3) && !axes) || (node.has(4) && !steps)) return;
  fill(node, 0, [&](Places place) {
    for (std::size_t i = 0; i < starts->size(); ++i) {
      const auto axis = axisOf(axes && i < axes->size() ? (*axes)[i] : static_cast<std::int64_t>(i), place.size());
      if (!axis) return OnnxExtent::unknown();
      const std::int64_t step = steps && i < steps->size() ? (*steps)[i] : 1, extent = x->shape[*axis];
      const std::int64_t begin = (*starts)[i] < 0 ? (*starts)[i] + extent : (*starts)[i];
      place[*axis] = std::clamp<std::int64_t>(begin, 0, step < 0 ? extent - 1 : extent) + place[*axis] * step;
    }
    return elementAt(*x, place);
  });
}

void concatenated(Node& node) {
  std::vector<OnnxArray> arrays;
  for (std::size_t i = 0; i < node.numInputs(); ++i) {
    MaybeArray array = node.array(i);
    if (!array) return;
    arrays.push_back(std::move(*array));
  }
  if (arrays.empty()) return;
  const std::optional<std::size_t> axis = axisOf(node.integer("axis", 1), arrays.front().shape.size());
  if (!axis) return;
  fill(node, 0, [&](Places place) {
    for (const OnnxArray& array : arrays) {
      if (place[*axis] < array.shape[*axis]) return elementAt(array, place);
      place[*axis] -= array.shape[*axis];
    }
    return OnnxExtent::unknown();
  });
}

void split(Node& node) {
  const MaybeArray x = node.array(0);
  const std::optional<std::size_t> axis = x ? axisOf(node.integer("axis", 0), x->shape.size()) : std::nullopt;
  std::int64_t offset = 0;
  for (std::size_t output = 0; axis && output < node.numOutputs(); ++output) {
    const std::optional<Places> shape = smallShape(node, output);
    if (!shape) return;
    fill(node, output, [&](Places place) {
      place[*axis] += offset;
      return elementAt(*x, place);
    });
    offset += (*shape)[*axis];
  }
}

/// One update for each element of the last axis of the indices, over whole rows of one element.
void scattered(Node& node) {
  const MaybeArray x = node.array(0), indices = node.array(1), updates = node.array(2);
  if (!x || !indices || !updates || indices->shape.empty()) return;
  const auto depth = static_cast<std::size_t>(indices->shape.back());
  const std::size_t count = depth == 0 ? 0 : indices->elements.size() / depth;
  if (depth != x->shape.size() || updates->elements.size() != count) return;
  OnnxArray result = *x;
  for (std::size_t i = 0; i < count; ++i) {
    Places place;
    for (std::size_t axis = 0; axis < depth; ++axis) {
      const std::int64_t at = indices->elements[i * depth + axis].number().value_or(-x->shape[axis] - 1);
      place.push_back(at < 0 ? at + x->shape[axis] : at);
    }
    if (elementAt(result, place).isUnknown()) return;
    result.elements[static_cast<std::size_t>(indexOf(place, x->shape))] = updates->elements[i];
  }
  node.outputs()[0].values = std::move(result.elements);
}

void triangle(Node& node) {
  const MaybeArray x = node.array(0);
  const auto diagonal = node.numbers(1, "k");
  if (!x || x->shape.size() < 2 || (node.has(1) && !diagonal)) return;
  const std::int64_t shift = diagonal && !diagonal->empty() ? diagonal->front() : 0;
  const bool isUpper = node.integer("upper", 1) != 0;
  fill(node, 0, [&](const Places& place) {
    const std::int64_t distance = place[place.size() - 1] - place[place.size() - 2];
    return (isUpper ? distance >= shift : distance <= shift) ? elementAt(*x, place) : OnnxExtent(0);
  });
}

// ---- reductions of a vector to a number

template <Binary combine>
void reduced(Node& node) {
  const MaybeArray x = node.array(0);
  const std::optional<Places> shape = smallShape(node, 0);
  if (!x || !shape || countOf(*shape) != 1 || x->elements.empty()) return;
  OnnxExtent result = x->elements.front();
  for (std::size_t i = 1; i < x->elements.size(); ++i) result = combine(node, result, x->elements[i]);
  if (!result.isUnknown()) node.outputs()[0].values = OnnxExtents{result};
}

/// ConstantOfShape gives 0 where it has no value.
void filled(Node& node) {
  const ::onnx::AttributeProto* const value = findAttribute(node.node(), "value");
  const std::optional<OnnxExtents> elements = value ? integersOf(value->t()) : OnnxExtents{0};
  if (elements && elements->size() == 1) fill(node, 0, [&](const Places&) { return elements->front(); });
}

void constant(Node& node) {
  if (const auto* const value = findAttribute(node.node(), "value")) {
    node.outputs()[0].values = integersOf(value->t());
  } else if (findAttribute(node.node(), "value_int")) {
    node.outputs()[0].values = OnnxExtents{node.integer("value_int", 0)};
  } else if (findAttribute(node.node(), "value_ints")) {
    const Places values = node.integers("value_ints");
    node.outputs()[0].values = OnnxExtents(values.begin(), values.end());
  }
}

const std::map<std::string_view, Rule>& rules() {
  static const std::map<std::string_view, Rule> kRules = {{"Abs", unary<magnitude>},
                                                          {"Add", elementwise<sum>},
                                                          {"And", elementwise<logical<areBoth>>},
                                                          {"Cast", unary<cast>},
                                                          {"CastLike", unary<cast>},
                                                          {"Ceil", unary<same>},
                                                          {"Concat", concatenated},
                                                          {"Constant", constant},
                                                          {"ConstantOfShape", filled},
                                                          {"Div", elementwise<quotient>},
                                                          {"Equal", elementwise<compared<isEqual>>},
                                                          {"Expand", repeated},
                                                          {"Flatten", reshaped},
                                                          {"Floor", unary<same>},
                                                          {"Gather", gathered},
                                                          {"Greater", elementwise<compared<isGreater>>},
                                                          {"GreaterOrEqual", elementwise<compared<isAtLeast>>},
                                                          {"Identity", unary<same>},
                                                          {"Less", elementwise<compared<isLess>>},
                                                          {"LessOrEqual", elementwise<compared<isAtMost>>},
                                                          {"Max", elementwise<extremum<true>>},
                                                          {"Min", elementwise<extremum<false>>},
                                                          {"Mod", elementwise<remainder>},
                                                          {"Mul", elementwise<product>},
                                                          {"Neg", unary<negative>},
                                                          {"Not", unary<opposite>},
                                                          {"Or", elementwise<logical<isAny>>},
                                                          {"Pow", elementwise<power>},
                                                          {"Range", range},
                                                          {"ReduceMax", reduced<extremum<true>>},
                                                          {"ReduceMin", reduced<extremum<false>>},
                                                          {"ReduceProd", reduced<product>},
                                                          {"ReduceSum", reduced<sum>},
                                                          {"Reshape", reshaped},
                                                          {"Round", unary<same>},
                                                          {"ScatterND", scattered},
                                                          {"Shape", shapeOfInput},
                                                          {"Sign", unary<signOf>},
                                                          {"Size", sizeOfInput},
                                                          {"Slice", sliced},
                                                          {"Split", split},
                                                          {"Squeeze", reshaped},
                                                          {"Sub", elementwise<difference>},
                                                          {"Tile", repeated},
                                                          {"Transpose", transposed},
                                                          {"Trilu", triangle},
                                                          {"Unsqueeze", reshaped},
                                                          {"Where", where},
                                                          {"Xor", elementwise<logical<areDifferent>>}};
  return kRules;
}

// ---- elements of constants

template <class Values>
std::optional<OnnxExtents> wholeNumbers(const Values& values) {
  constexpr double kMost = 1LL << 53;
  OnnxExtents extents;
  for (const auto value : values) {
    const auto number = static_cast<double>(value);
    if (!(std::abs(number) <= kMost) || number != std::floor(number)) return std::nullopt;
    extents.emplace_back(static_cast<std::int64_t>(number));
  }
  return extents;
}

template <class T>
std::vector<T> rawElements(const ::onnx::TensorProto& tensor) {
  std::vector<T> values(tensor.raw_data().size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), tensor.raw_data().data(), values.size() * sizeof(T));
  return values;
}

/// 2^62 is beyond every extent, as the largest numbers are that exporters write for the end of an axis.
OnnxExtents limited(const std::vector<std::int64_t>& values) {
  constexpr std::int64_t kBeyond = std::int64_t{1} << 62;
  OnnxExtents extents;
  for (const std::int64_t value : values) extents.emplace_back(std::clamp(value, -kBeyond, kBeyond));
  return extents;
}

std::optional<OnnxExtents> allIntegersOf(const ::onnx::TensorProto& tensor) {
  const auto list = [](const auto& values) { return limited({values.begin(), values.end()}); };
  switch (tensor.data_type()) {
    case Tensor::INT64:
      return tensor.int64_data_size() > 0 ? list(tensor.int64_data()) : list(rawElements<std::int64_t>(tensor));
    case Tensor::INT32:
      return tensor.int32_data_size() > 0 ? list(tensor.int32_data()) : list(rawElements<std::int32_t>(tensor));
    case Tensor::BOOL:
      return tensor.int32_data_size() > 0 ? list(tensor.int32_data()) : list(rawElements<std::uint8_t>(tensor));
    case Tensor::FLOAT:
      return tensor.float_data_size() > 0 ? wholeNumbers(tensor.float_data())
                                          : wholeNumbers(rawElements<float>(tensor));
    case Tensor::DOUBLE:
      return tensor.double_data_size() > 0 ? wholeNumbers(tensor.double_data())
                                           : wholeNumbers(rawElements<double>(tensor));
    default: return std::nullopt;
  }
}

}  // namespace

}  // namespace onnx_values

std::optional<OnnxExtents> integersOf(const ::onnx::TensorProto& tensor) {
  const onnx_values::Places shape(tensor.dims().begin(), tensor.dims().end());
  const std::int64_t count = onnx_values::countOf(shape);
  if (count > onnx_values::kMaxElements || tensor.data_location() == ::onnx::TensorProto::EXTERNAL) return std::nullopt;
  const std::optional<OnnxExtents> values = onnx_values::allIntegersOf(tensor);
  return values && static_cast<std::int64_t>(values->size()) == count ? values : std::nullopt;
}

void foldOnnxNode(OnnxNodeFacts& node) {
  if (node.outputs().empty()) return;
  const auto rule = onnx_values::rules().find(node.node().op_type());
  if (rule != onnx_values::rules().end()) rule->second(node);
}

}  // namespace fuseline
