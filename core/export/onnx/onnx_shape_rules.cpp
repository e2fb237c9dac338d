// Shapes and element types of the outputs of ONNX operators, of all versions, and of those that ONNX Runtime fuses.
// Source: github.com/onnx/onnx, docs/Operators.md; github.com/microsoft/onnxruntime, docs/ContribOperators.md.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_node_facts.h"
#include "core/export/onnx/onnx_reshape_rule.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>

namespace fuseline {

/// A separate name, because other files have rules of the same names.
namespace onnx_shapes {

namespace {

using Node = OnnxNodeFacts;
using Rule = void (*)(Node&);
using Tensor = ::onnx::TensorProto;
using MaybeExtents = std::optional<OnnxExtents>;

constexpr std::size_t kMaxRank = 64;

// ---- elementwise

void sameAsFirst(Node& node) { node.setShape(0, node.shape(0)); }

void allSameAsFirst(Node& node) {
  for (std::size_t output = 0; output < node.numOutputs(); ++output) node.setShape(output, node.shape(0));
}

OnnxExtents broadcastOf(const OnnxExtents& a, const OnnxExtents& b, OnnxFactSymbols& symbols) {
  const OnnxExtents &longer = a.size() < b.size() ? b : a, &shorter = a.size() < b.size() ? a : b;
  OnnxExtents result = longer;
  const std::size_t offset = longer.size() - shorter.size();
  for (std::size_t axis = 0; axis < shorter.size(); ++axis)
    result[offset + axis] = symbols.broadcast(longer[offset + axis], shorter[axis]);
  return result;
}

void broadcastAll(Node& node) {
  MaybeExtents result = OnnxExtents{};
  for (std::size_t i = 0; i < node.numInputs() && result; ++i)
    result = node.shape(i) ? MaybeExtents(broadcastOf(*result, *node.shape(i), node.symbols())) : std::nullopt;
  node.setShape(0, std::move(result));
}

void comparison(Node& node) {
  broadcastAll(node);
  node.setType(0, Tensor::BOOL);
}

void whereRule(Node& node) {
  broadcastAll(node);
  node.setType(0, node.input(1).elementType);
}

void cast(Node& node) {
  sameAsFirst(node);
  node.setType(0, static_cast<std::int32_t>(node.integer("to", 0)));
}

void castLike(Node& node) {
  sameAsFirst(node);
  node.setType(0, node.input(1).elementType);
}

void predicate(Node& node) {
  sameAsFirst(node);
  node.setType(0, Tensor::BOOL);
}

void dropout(Node& node) {
  allSameAsFirst(node);
  node.setType(1, Tensor::BOOL);
}

/// Outputs after the normalized tensor: mean and deviation, and the sum that was normalized.
void normalization(Node& node) {
  sameAsFirst(node);
  const std::optional<std::size_t> axis = node.rank(0) ? axisOf(node.integer("axis", -1), *node.rank(0)) : std::nullopt;
  for (std::size_t output = 1; output < node.numOutputs(); ++output) {
    MaybeExtents shape = axis ? node.shape(0) : std::nullopt;
    if (shape) std::fill(shape->begin() + static_cast<std::ptrdiff_t>(*axis), shape->end(), OnnxExtent(1));
    node.setShape(output, std::move(shape));
    node.setType(output, Tensor::FLOAT);
  }
}

void skipNormalization(Node& node) {
  normalization(node);
  node.setShape(3, node.shape(0));
  node.setType(3, node.input(0).elementType);
}

void quantize(Node& node) {
  sameAsFirst(node);
  const std::int32_t given = static_cast<std::int32_t>(node.integer("output_dtype", 0));
  node.setType(0, node.has(2) ? node.input(2).elementType : given != 0 ? given : std::int32_t{Tensor::UINT8});
}

void dequantize(Node& node) {
  sameAsFirst(node);
  node.setType(0, node.input(1).elementType);
}

void dynamicQuantize(Node& node) {
  sameAsFirst(node);
  node.setType(0, Tensor::UINT8);
  node.setShape(1, OnnxExtents{});
  node.setType(1, Tensor::FLOAT);
  node.setShape(2, OnnxExtents{});
  node.setType(2, Tensor::UINT8);
}

// ---- GEMMs

OnnxExtents matrixOf(const OnnxExtents& shape, bool isTransposed) {
  OnnxExtents result = shape;
  if (isTransposed && result.size() > 1) std::swap(result[result.size() - 1], result[result.size() - 2]);
  return result;
}

/// [..., M, K] by [..., K, N]; a vector is a matrix of one row or column, which is dropped from the result.
MaybeExtents productShape(OnnxExtents a, OnnxExtents b, OnnxFactSymbols& symbols) {
  if (a.empty() || b.empty()) return std::nullopt;
  const bool isRow = a.size() == 1, isColumn = b.size() == 1;
  if (isRow) a.insert(a.begin(), 1);
  if (isColumn) b.push_back(1);
  symbols.equate(a.back(), b[b.size() - 2]);
  const OnnxExtent rows = a[a.size() - 2], columns = b.back();
  a.resize(a.size() - 2);
  b.resize(b.size() - 2);
  OnnxExtents result = broadcastOf(a, b, symbols);
  if (!isRow) result.push_back(rows);
  if (!isColumn) result.push_back(columns);
  return result;
}

void matMulOf(Node& node, std::size_t a, std::size_t b) {
  if (!node.shape(a) || !node.shape(b)) return;
  node.setShape(0, productShape(matrixOf(*node.shape(a), node.integer("transA", 0) != 0),
                                matrixOf(*node.shape(b), node.integer("transB", 0) != 0), node.symbols()));
}

void matMul(Node& node) { matMulOf(node, 0, 1); }

void integerMatMul(Node& node) {
  matMul(node);
  node.setType(0, Tensor::INT32);
}

void quantizedMatMul(Node& node) {
  matMulOf(node, 0, 3);
  node.setType(0, node.input(7).elementType);
}

void floatIntegerMatMul(Node& node) {
  matMul(node);
  node.setType(0, Tensor::FLOAT);
}

void matMulOfBits(Node& node) {
  if (!node.shape(0) || node.shape(0)->empty()) return;
  OnnxExtents shape = *node.shape(0);
  shape.back() = node.integer("N", 0);
  node.setShape(0, std::move(shape));
}

// ---- convolutions and pools

struct Window {
  std::vector<std::int64_t> kernel, strides, dilations, pads;
  bool isSame = false;
  bool isCeiled = false;

  static Window of(const Node& node, std::vector<std::int64_t> kernel) {
    const std::size_t rank = kernel.size();
    const auto list = [&](const char* name, std::size_t size, std::int64_t otherwise) {
      std::vector<std::int64_t> values = node.integers(name);
      values.resize(size, otherwise);
      return values;
    };
    const std::string padding = textOf(node.node(), "auto_pad", "NOTSET");
    return {.kernel = std::move(kernel),
            .strides = list("strides", rank, 1),
            .dilations = list("dilations", rank, 1),
            .pads = list("pads", 2 * rank, 0),
            .isSame = padding.starts_with("SAME"),
            .isCeiled = node.integer("ceil_mode", 0) != 0};
  }

  OnnxExtent extent(const OnnxExtent& input, std::size_t axis, OnnxFactSymbols& symbols) const {
    if (strides[axis] <= 0) return OnnxExtent::unknown();
    if (isSame) return symbols.quotient(input + OnnxExtent(strides[axis] - 1), strides[axis]);
    const std::int64_t span = dilations[axis] * (kernel[axis] - 1) + 1;
    const OnnxExtent free = input + OnnxExtent(pads[axis] + pads[axis + kernel.size()] - span);
    return symbols.quotient(free + OnnxExtent(isCeiled ? strides[axis] - 1 : 0), strides[axis]) + OnnxExtent(1);
  }
};

std::optional<std::vector<std::int64_t>> kernelOf(const Node& node, std::size_t weight) {
  std::vector<std::int64_t> kernel = node.integers("kernel_shape");
  if (!kernel.empty() || !node.shape(weight)) return kernel;
  for (std::size_t axis = 2; axis < node.shape(weight)->size(); ++axis) {
    const std::optional<std::int64_t> extent = (*node.shape(weight))[axis].number();
    if (!extent) return std::nullopt;
    kernel.push_back(*extent);
  }
  return kernel;
}

/// [N, C, ...] to [N, channels, ...].
MaybeExtents windowed(Node& node, const OnnxExtent& channels, std::optional<std::vector<std::int64_t>> kernel) {
  const MaybeExtents& x = node.shape(0);
  if (!x || !kernel || kernel->empty() || x->size() != kernel->size() + 2) return std::nullopt;
  const Window window = Window::of(node, std::move(*kernel));
  OnnxExtents shape = {(*x)[0], channels};
  for (std::size_t axis = 0; axis < window.kernel.size(); ++axis)
    shape.push_back(window.extent((*x)[axis + 2], axis, node.symbols()));
  return shape;
}

void convolutionBy(Node& node, std::size_t weight) {
  const MaybeExtents &x = node.shape(0), &w = node.shape(weight);
  if (!x || !w || x->size() < 3 || w->size() != x->size()) return;
  node.symbols().equate((*x)[1], (*w)[1] * OnnxExtent(node.integer("group", 1)));
  node.setShape(0, windowed(node, (*w)[0], kernelOf(node, weight)));
}

void convolution(Node& node) { convolutionBy(node, 1); }

void integerConvolution(Node& node) {
  convolution(node);
  node.setType(0, Tensor::INT32);
}

void quantizedConvolution(Node& node) {
  convolutionBy(node, 3);
  node.setType(0, node.input(7).elementType);
}

void transposedConvolution(Node& node) {
  const MaybeExtents &x = node.shape(0), &w = node.shape(1);
  const auto kernel = kernelOf(node, 1);
  if (!x || !w || !kernel || kernel->empty() || x->size() != kernel->size() + 2 || w->size() < 2) return;
  const Window window = Window::of(node, *kernel);
  std::vector<std::int64_t> extra = node.integers("output_padding"), given = node.integers("output_shape");
  extra.resize(kernel->size(), 0);
  OnnxExtents shape = {(*x)[0], (*w)[1] * OnnxExtent(node.integer("group", 1))};
  for (std::size_t axis = 0; axis < kernel->size(); ++axis) {
    const OnnxExtent steps = (*x)[axis + 2] * OnnxExtent(window.strides[axis]);
    const std::int64_t rest = window.dilations[axis] * ((*kernel)[axis] - 1) + 1 - window.strides[axis] + extra[axis] -
                              window.pads[axis] - window.pads[axis + kernel->size()];
    shape.push_back(given.size() == kernel->size() ? OnnxExtent(given[axis])
                    : window.isSame                ? steps
                                                   : steps + OnnxExtent(rest));
  }
  node.setShape(0, std::move(shape));
}

void pool(Node& node) {
  if (!node.rank(0) || *node.rank(0) < 2) return;
  const OnnxExtent channels = (*node.shape(0))[1];
  for (std::size_t output = 0; output < node.numOutputs(); ++output)
    node.setShape(output, windowed(node, channels, node.integers("kernel_shape")));
  node.setType(1, Tensor::INT64);
}

void globalPool(Node& node) {
  MaybeExtents shape = node.shape(0);
  for (std::size_t axis = 2; shape && axis < shape->size(); ++axis) (*shape)[axis] = 1;
  node.setShape(0, std::move(shape));
}

// ---- movements

void transpose(Node& node) {
  if (!node.rank(0)) return;
  std::vector<std::int64_t> order = node.integers("perm");
  if (order.empty())
    for (std::size_t axis = *node.rank(0); axis > 0; --axis) order.push_back(static_cast<std::int64_t>(axis) - 1);
  OnnxExtents shape;
  for (const std::int64_t axis : order) {
    const std::optional<std::size_t> from = axisOf(axis, *node.rank(0));
    if (!from) return;
    shape.push_back((*node.shape(0))[*from]);
  }
  if (shape.size() == *node.rank(0)) node.setShape(0, std::move(shape));
}

/// A shape that is computed says its rank where it is a vector of known length.
MaybeExtents extentsAt(const Node& node, std::size_t index, std::string_view attribute) {
  if (MaybeExtents wanted = node.list(index, attribute)) return wanted;
  if (node.rank(index) != 1) return std::nullopt;
  const std::optional<std::int64_t> rank = (*node.shape(index))[0].number();
  if (!rank || *rank < 0 || *rank > static_cast<std::int64_t>(kMaxRank)) return std::nullopt;
  return OnnxExtents(static_cast<std::size_t>(*rank), OnnxExtent::unknown());
}

void reshape(Node& node) {
  const MaybeExtents wanted = extentsAt(node, 1, "shape");
  if (!wanted || wanted->size() > kMaxRank) return;
  node.setShape(0, node.shape(0)
                       ? reshapedExtents(*node.shape(0), *wanted, node.integer("allowzero", 0) != 0, node.symbols())
                       : *wanted);
}

void flatten(Node& node) {
  if (!node.rank(0)) return;
  const std::int64_t axis = node.integer("axis", 1);
  const auto rank = static_cast<std::int64_t>(*node.rank(0));
  const std::int64_t split = axis < 0 ? axis + rank : axis;
  if (split < 0 || split > rank) return;
  const OnnxExtents& x = *node.shape(0);
  node.setShape(0, OnnxExtents{productOf({x.begin(), x.begin() + split}), productOf({x.begin() + split, x.end()})});
}

/// Nothing where one of them is no axis.
std::optional<std::set<std::size_t>> axesOf(const std::vector<std::int64_t>& axes, std::size_t rank) {
  std::set<std::size_t> found;
  for (const std::int64_t axis : axes) {
    const std::optional<std::size_t> each = axisOf(axis, rank);
    if (!each) return std::nullopt;
    found.insert(*each);
  }
  return found;
}

void squeeze(Node& node) {
  if (!node.rank(0)) return;
  const bool isGiven = node.has(1) || findAttribute(node.node(), "axes");
  const auto given = node.numbers(1, "axes");
  const auto axes = given ? axesOf(*given, *node.rank(0)) : std::nullopt;
  if (isGiven && !axes) return;
  OnnxExtents shape;
  for (std::size_t axis = 0; axis < *node.rank(0); ++axis) {
    const OnnxExtent& extent = (*node.shape(0))[axis];
    const bool isDropped = isGiven ? axes->contains(axis) : extent.is(1);
    if (!isDropped) shape.push_back(extent);
    if (isDropped) node.symbols().needNumber(extent);
  }
  node.setShape(0, std::move(shape));
}

void unsqueeze(Node& node) {
  const auto given = node.numbers(1, "axes");
  if (!node.rank(0) || !given) return;
  const std::size_t rank = *node.rank(0) + given->size();
  const auto axes = axesOf(*given, rank);
  if (!axes || axes->size() != given->size() || rank > kMaxRank) return;
  OnnxExtents shape;
  auto next = node.shape(0)->begin();
  for (std::size_t axis = 0; axis < rank; ++axis) shape.push_back(axes->contains(axis) ? OnnxExtent(1) : *next++);
  node.setShape(0, std::move(shape));
}

void concat(Node& node) {
  MaybeExtents result;
  std::optional<std::size_t> axis;
  for (std::size_t i = 0; i < node.numInputs(); ++i) {
    const MaybeExtents& shape = node.shape(i);
    if (!shape || (result && shape->size() != result->size())) return;
    if (!result) axis = axisOf(node.integer("axis", 1), shape->size());
    if (!axis) return;
    if (!result) {
      result = shape;
      continue;
    }
    for (std::size_t each = 0; each < shape->size(); ++each)
      (*result)[each] =
          each == *axis ? (*result)[each] + (*shape)[each] : node.symbols().broadcast((*result)[each], (*shape)[each]);
  }
  node.setShape(0, std::move(result));
}

void split(Node& node) {
  const std::optional<std::size_t> axis = node.rank(0) ? axisOf(node.integer("axis", 0), *node.rank(0)) : std::nullopt;
  if (!axis) return;
  const OnnxExtent whole = (*node.shape(0))[*axis];
  const bool isGiven = node.has(1) || findAttribute(node.node(), "split");
  const MaybeExtents sizes = node.list(1, "split");
  const auto count = static_cast<std::int64_t>(node.numOutputs());
  const OnnxExtent each = node.symbols().quotient(whole + OnnxExtent(count - 1), count);
  if (isGiven) node.symbols().needNumber(whole);
  for (std::size_t output = 0; output < node.numOutputs(); ++output) {
    OnnxExtents shape = *node.shape(0);
    const bool isLast = output + 1 == node.numOutputs();
    if (isGiven)
      shape[*axis] = sizes && output < sizes->size() ? (*sizes)[output] : OnnxExtent::unknown();
    else if (const auto exact = whole.dividedBy(count))
      shape[*axis] = *exact;
    else
      shape[*axis] = isLast ? whole - each * OnnxExtent(count - 1) : each;
    node.setShape(output, std::move(shape));
  }
}

/// An end or a beginning that counts from the end, or lies outside. Nothing: which of these it is depends on symbols.
std::optional<OnnxExtent> bound(const OnnxExtent& place, const OnnxExtent& extent) {
  const auto isNegative = place.sign() ? std::optional(*place.sign() < 0) : std::nullopt;
  const std::optional<int> ahead = (extent - place).sign();
  if (ahead && *ahead <= 0) return extent;
  if (!isNegative) return ahead ? std::optional(place) : std::nullopt;
  if (!*isNegative) return place;
  const OnnxExtent counted = place + extent;
  const std::optional<int> sign = counted.sign();
  return sign && *sign < 0 ? OnnxExtent(0) : counted;
}

/// Exporters write an end far outside for the end of the axis; a number that equals the extent is the end, too.
OnnxExtent slicedExtent(const OnnxExtent& extent, const OnnxExtent& from, const OnnxExtent& to, std::int64_t step,
                        OnnxFactSymbols& symbols) {
  constexpr std::int64_t kFar = 1'000'000;
  if (step < 0) {
    symbols.needNumber(extent);
    const auto size = extent.number(), begin = from.number(), end = to.number();
    if (!size || !begin || !end) return OnnxExtent::unknown();
    const std::int64_t first = std::min(*begin < 0 ? *begin + *size : *begin, *size - 1);
    const std::int64_t last = *end < 0 && *end >= -*size ? *end + *size : std::max<std::int64_t>(*end, -1);
    return std::max<std::int64_t>(0, (first - last - step - 1) / -step);
  }
  const bool isToEnd = to.number().value_or(0) >= kFar;
  const bool isAsLong = !isToEnd && symbols.hasLiteral(extent) && to.number() && symbols.valueOf(extent) == to.number();
  if (isAsLong && !from.is(0)) symbols.needNumber(extent);
  const std::optional<OnnxExtent> begin = bound(from, extent);
  const std::optional<OnnxExtent> end = isToEnd || isAsLong ? std::optional(extent) : bound(to, extent);
  if (!begin || !end) {
    symbols.needNumbers({extent, from, to});
    return OnnxExtent::unknown();
  }
  const OnnxExtent length = *end - *begin;
  const std::optional<int> sign = length.sign();
  if (sign && *sign <= 0) return 0;
  return step == 1 ? length : symbols.quotient(length + OnnxExtent(step - 1), step);
}

void slice(Node& node) {
  if (!node.rank(0)) return;
  const std::size_t rank = *node.rank(0);
  OnnxExtents shape = *node.shape(0);
  const MaybeExtents starts = node.list(1, "starts"), ends = node.list(2, "ends");
  const auto givenAxes = node.numbers(3, "axes"), givenSteps = node.numbers(4, "steps");
  const bool hasAxes = node.has(3) || findAttribute(node.node(), "axes");
  if (hasAxes && !givenAxes) return;
  std::size_t count = rank;
  if (givenAxes)
    count = givenAxes->size();
  else if (starts)
    count = starts->size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto axis = axisOf(givenAxes ? (*givenAxes)[i] : static_cast<std::int64_t>(i), rank);
    if (!axis) return;
    const std::int64_t step = givenSteps && i < givenSteps->size() ? (*givenSteps)[i]
                              : node.has(4) && !givenSteps         ? 0
                                                                   : 1;
    const bool isKnown = starts && ends && i < starts->size() && i < ends->size() && step != 0;
    shape[*axis] =
        isKnown ? slicedExtent(shape[*axis], (*starts)[i], (*ends)[i], step, node.symbols()) : OnnxExtent::unknown();
  }
  node.setShape(0, std::move(shape));
}

void gather(Node& node) {
  const std::optional<std::size_t> axis = node.rank(0) ? axisOf(node.integer("axis", 0), *node.rank(0)) : std::nullopt;
  if (!axis || !node.shape(1)) return;
  const OnnxExtents &x = *node.shape(0), &indices = *node.shape(1);
  const auto at = static_cast<std::ptrdiff_t>(*axis);
  OnnxExtents shape(x.begin(), x.begin() + at);
  shape.insert(shape.end(), indices.begin(), indices.end());
  shape.insert(shape.end(), x.begin() + at + 1, x.end());
  node.setShape(0, std::move(shape));
}

void sameAsSecond(Node& node) { node.setShape(0, node.shape(1)); }

void gatherNd(Node& node) {
  if (!node.rank(0) || !node.rank(1) || node.shape(1)->empty()) return;
  const OnnxExtents &x = *node.shape(0), &indices = *node.shape(1);
  const std::optional<std::int64_t> depth = indices.back().number();
  const std::int64_t skipped = depth ? node.integer("batch_dims", 0) + *depth : -1;
  if (skipped < 0 || skipped > static_cast<std::int64_t>(x.size())) return;
  OnnxExtents shape(indices.begin(), indices.end() - 1);
  shape.insert(shape.end(), x.begin() + skipped, x.end());
  node.setShape(0, std::move(shape));
}

void expand(Node& node) {
  const MaybeExtents wanted = extentsAt(node, 1, "shape");
  if (!wanted || !node.shape(0)) return;
  OnnxExtents shape = *wanted;
  std::ranges::replace_if(
      shape, [](const OnnxExtent& each) { return each.number().value_or(1) < 0; }, OnnxExtent(1));
  const bool isOpen = std::ranges::any_of(shape, &OnnxExtent::isUnknown);
  OnnxExtents result = broadcastOf(*node.shape(0), shape, node.symbols());
  // If the requested extent is unknown, 1 may become anything.
  const std::size_t offset = result.size() - shape.size();
  for (std::size_t axis = 0; isOpen && axis < shape.size(); ++axis)
    if (shape[axis].isUnknown() && result[offset + axis].is(1)) result[offset + axis] = OnnxExtent::unknown();
  node.setShape(0, std::move(result));
}

void tile(Node& node) {
  const MaybeExtents repeats = node.list(1, "repeats");
  if (!node.rank(0)) return;
  OnnxExtents shape = *node.shape(0);
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    shape[axis] = repeats && axis < repeats->size() ? shape[axis] * (*repeats)[axis] : OnnxExtent::unknown();
  node.setShape(0, std::move(shape));
}

void pad(Node& node) {
  if (!node.rank(0)) return;
  const std::size_t rank = *node.rank(0);
  const MaybeExtents pads = node.list(1, "pads");
  const auto axes = node.has(3) ? node.numbers(3, "axes") : std::nullopt;
  if (node.has(3) && !axes) return;
  const std::size_t count = axes ? axes->size() : rank;
  OnnxExtents shape = *node.shape(0);
  for (std::size_t i = 0; i < count; ++i) {
    const auto axis = axisOf(axes ? (*axes)[i] : static_cast<std::int64_t>(i), rank);
    if (!axis) return;
    const bool isKnown = pads && pads->size() == 2 * count;
    shape[*axis] = isKnown ? shape[*axis] + (*pads)[i] + (*pads)[i + count] : OnnxExtent::unknown();
  }
  node.setShape(0, std::move(shape));
}

void depthToSpace(Node& node) {
  const std::int64_t block = node.integer("blocksize", 1);
  if (node.rank(0) != 4 || block <= 0) return;
  const OnnxExtents& x = *node.shape(0);
  node.setShape(0, OnnxExtents{x[0], node.symbols().quotient(x[1], OnnxExtent(block) * OnnxExtent(block)),
                               x[2] * OnnxExtent(block), x[3] * OnnxExtent(block)});
}

void spaceToDepth(Node& node) {
  const std::int64_t block = node.integer("blocksize", 1);
  if (node.rank(0) != 4 || block <= 0) return;
  const OnnxExtents& x = *node.shape(0);
  node.setShape(0, OnnxExtents{x[0], x[1] * OnnxExtent(block) * OnnxExtent(block), node.symbols().quotient(x[2], block),
                               node.symbols().quotient(x[3], block)});
}

// ---- reductions

void reduction(Node& node) {
  if (!node.rank(0)) return;
  const bool isGiven = node.has(1) || findAttribute(node.node(), "axes");
  const auto given = node.numbers(1, "axes");
  const bool keeps = node.integer("keepdims", 1) != 0;
  OnnxExtents shape = *node.shape(0);
  if (isGiven && !given) return keeps ? node.setShape(0, OnnxExtents(shape.size(), OnnxExtent::unknown())) : void();
  const bool isAll = !given || given->empty();
  if (isAll && node.integer("noop_with_empty_axes", 0) != 0) return sameAsFirst(node);
  const auto axes = axesOf(given.value_or(std::vector<std::int64_t>()), shape.size());
  if (!axes) return;
  OnnxExtents result;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const bool isReduced = isAll || axes->contains(axis);
    if (!isReduced)
      result.push_back(shape[axis]);
    else if (keeps)
      result.emplace_back(1);
  }
  node.setShape(0, std::move(result));
}

void argument(Node& node) {
  node.setType(0, Tensor::INT64);
  const std::optional<std::size_t> axis = node.rank(0) ? axisOf(node.integer("axis", 0), *node.rank(0)) : std::nullopt;
  if (!axis) return;
  OnnxExtents shape = *node.shape(0);
  if (node.integer("keepdims", 1) != 0)
    shape[*axis] = 1;
  else
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(*axis));
  node.setShape(0, std::move(shape));
}

void topK(Node& node) {
  node.setType(1, Tensor::INT64);
  const std::optional<std::size_t> axis = node.rank(0) ? axisOf(node.integer("axis", -1), *node.rank(0)) : std::nullopt;
  if (!axis) return;
  OnnxExtents shape = *node.shape(0);
  const std::int64_t attribute = node.integer("k", -1);
  const MaybeExtents count = attribute >= 0 ? OnnxExtents{attribute} : node.input(1).values;
  shape[*axis] = count && !count->empty() ? count->front() : OnnxExtent::unknown();
  node.setShape(0, shape);
  node.setShape(1, std::move(shape));
}

// ---- from nothing, or from shapes

void shapeOfInput(Node& node) {
  node.setType(0, Tensor::INT64);
  if (!node.rank(0)) return node.setShape(0, OnnxExtents{OnnxExtent::unknown()});
  const auto rank = static_cast<std::int64_t>(*node.rank(0));
  const auto clamped = [rank](std::int64_t axis) {
    return std::clamp<std::int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
  };
  const std::int64_t begin = clamped(node.integer("start", 0)), end = clamped(node.integer("end", rank));
  node.setShape(0, OnnxExtents{std::max<std::int64_t>(0, end - begin)});
}

void sizeOfInput(Node& node) {
  node.setType(0, Tensor::INT64);
  node.setShape(0, OnnxExtents{});
}

void constantOfShape(Node& node) {
  const ::onnx::AttributeProto* const value = findAttribute(node.node(), "value");
  node.outputs()[0].elementType = value ? value->t().data_type() : std::int32_t{Tensor::FLOAT};
  const MaybeExtents wanted = extentsAt(node, 0, "");
  if (wanted) node.setShape(0, *wanted);
}

void range(Node& node) {
  node.setShape(0, OnnxExtents{OnnxExtent::unknown()});
  std::array<OnnxExtent, 3> ends;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const MaybeExtents& values = node.input(i).values;
    if (!values || values->size() != 1) return;
    ends[i] = values->front();
  }
  const std::optional<std::int64_t> step = ends[2].number();
  if (!step || *step <= 0) return;
  const OnnxExtent length = ends[1] - ends[0];
  const bool isEmpty = length.sign().value_or(1) <= 0;
  node.setShape(0,
                OnnxExtents{isEmpty ? OnnxExtent(0) : node.symbols().quotient(length + OnnxExtent(*step - 1), *step)});
}

void oneHot(Node& node) {
  node.setType(0, node.input(2).elementType);
  if (!node.rank(0)) return;
  const std::optional<std::size_t> axis = axisOf(node.integer("axis", -1), *node.rank(0) + 1);
  if (!axis) return;
  OnnxExtents shape = *node.shape(0);
  const MaybeExtents& depth = node.input(1).values;
  const OnnxExtent classes = depth && depth->size() == 1 ? depth->front() : OnnxExtent::unknown();
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(*axis), classes);
  node.setShape(0, std::move(shape));
}

void nonZero(Node& node) {
  node.setType(0, Tensor::INT64);
  const OnnxExtent rank = node.rank(0) ? OnnxExtent(static_cast<std::int64_t>(*node.rank(0))) : OnnxExtent::unknown();
  node.setShape(0, OnnxExtents{rank, OnnxExtent::unknown()});
}

void random(Node& node) {
  node.setType(0, static_cast<std::int32_t>(node.integer("dtype", Tensor::FLOAT)));
  const std::vector<std::int64_t> shape = node.integers("shape");
  node.setShape(0, OnnxExtents(shape.begin(), shape.end()));
}

void likeInput(Node& node) {
  sameAsFirst(node);
  node.setType(0, static_cast<std::int32_t>(node.integer("dtype", node.input(0).elementType)));
}

// ---- sizes of images

std::optional<std::vector<float>> scalesOf(const Node& node, std::size_t index) {
  const ::onnx::AttributeProto* const attribute = findAttribute(node.node(), "scales");
  if (attribute) return std::vector<float>(attribute->floats().begin(), attribute->floats().end());
  const MaybeExtents& values = node.input(index).values;
  if (!values || values->empty()) return std::nullopt;
  std::vector<float> scales;
  for (const OnnxExtent& value : *values) {
    if (!value.number()) return std::nullopt;
    scales.push_back(static_cast<float>(*value.number()));
  }
  return scales;
}

void resize(Node& node) {
  if (!node.rank(0)) return;
  OnnxExtents shape = *node.shape(0);
  const bool isOld = node.numInputs() <= 2;  // X, scales; later: X, roi, scales, sizes
  const MaybeExtents sizes = node.input(3).values;
  const auto scales = scalesOf(node, isOld ? 1 : 2);
  std::vector<std::int64_t> axes = node.integers("axes");
  if (axes.empty())
    for (std::size_t axis = 0; axis < shape.size(); ++axis) axes.push_back(static_cast<std::int64_t>(axis));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::optional<std::size_t> axis = axisOf(axes[i], shape.size());
    if (!axis) return;
    if (sizes && sizes->size() == axes.size())
      shape[*axis] = (*sizes)[i];
    else if (scales && scales->size() == axes.size())
      shape[*axis] = shape[*axis] * OnnxExtent(static_cast<std::int64_t>((*scales)[i]));
    else
      shape[*axis] = OnnxExtent::unknown();
  }
  node.setShape(0, std::move(shape));
}

// ---- sequences

/// [S, B, input] to [S, directions, B, hidden], and the last states.
void recurrent(Node& node) {
  if (node.rank(0) != 3) return;
  const OnnxExtents& x = *node.shape(0);
  const bool isBatchFirst = node.integer("layout", 0) != 0;
  const OnnxExtent directions = textOf(node.node(), "direction", "forward") == "bidirectional" ? 2 : 1;
  const OnnxExtent hidden = node.integer("hidden_size", -1);
  const OnnxExtent batch = x[isBatchFirst ? 0 : 1], length = x[isBatchFirst ? 1 : 0];
  if (node.rank(1) == 3) node.symbols().equate(x[2], (*node.shape(1))[2]);
  node.setShape(0, isBatchFirst ? OnnxExtents{batch, length, directions, hidden}
                                : OnnxExtents{length, directions, batch, hidden});
  for (std::size_t output = 1; output < node.numOutputs(); ++output)
    node.setShape(output,
                  isBatchFirst ? OnnxExtents{batch, directions, hidden} : OnnxExtents{directions, batch, hidden});
}

// ---- attention

/// The value's features for each token of the query. [B, S, features], or [B, heads, S, size].
void attention(Node& node) {
  if (!node.rank(0) || node.rank(0) != node.rank(2)) return sameAsFirst(node);
  OnnxExtents shape = *node.shape(0);
  const OnnxExtents& value = *node.shape(2);
  if (shape.empty()) return;
  const std::int64_t heads = node.integer("q_num_heads", 0), shared = node.integer("kv_num_heads", heads);
  const bool isShared = shape.size() == 3 && heads > 0 && shared > 0;
  shape.back() = isShared ? node.symbols().quotient(value.back() * OnnxExtent(heads), shared) : value.back();
  node.setShape(0, std::move(shape));
}

/// query, key, value of ONNX Runtime; without the latter two the query has all three.
void multiHeadAttention(Node& node) {
  if (!node.rank(0)) return;
  if (*node.rank(0) == 3 && node.rank(2) == 3) return attention(node);
  OnnxExtents shape = *node.shape(0);
  if (shape.size() == 5) shape = {shape[0], shape[1], shape[2] * shape[4]};
  node.setShape(0, std::move(shape));
}

/// weights: [input, 3 * features].
void packedAttention(Node& node) {
  if (node.rank(0) != 3 || node.rank(1) != 2) return;
  OnnxExtents shape = *node.shape(0);
  const std::vector<std::int64_t> sizes = node.integers("qkv_hidden_sizes");
  shape.back() = sizes.size() == 3 ? OnnxExtent(sizes[2]) : node.symbols().quotient((*node.shape(1))[1], 3);
  node.setShape(0, std::move(shape));
}

/// Queries of H heads, packed with keys and values of fewer, or not.
void groupQueryAttention(Node& node) {
  if (node.rank(0) != 3) return;
  OnnxExtents shape = *node.shape(0);
  const std::int64_t heads = node.integer("num_heads", 0), shared = node.integer("kv_num_heads", 0);
  if (!node.has(1) && heads > 0)
    shape.back() = node.symbols().quotient(shape.back() * OnnxExtent(heads), heads + 2 * shared);
  node.setShape(0, std::move(shape));
}

/// ids [B, S], a table [words, H].
void embedLayerNormalization(Node& node) {
  if (node.rank(0) != 2 || node.rank(2) != 2) return;
  OnnxExtents shape = *node.shape(0);
  node.setShape(1, OnnxExtents{shape[0]});
  node.setType(1, Tensor::INT32);
  shape.push_back((*node.shape(2))[1]);
  node.setShape(0, shape);
  node.setShape(2, std::move(shape));
  node.setType(0, node.input(2).elementType);
  node.setType(2, node.input(2).elementType);
}

// ---- Einsum

/// "bij,bjk->bik", and in its short form.
void einsum(Node& node) {
  std::string equation = textOf(node.node(), "equation", "");
  std::erase(equation, ' ');
  const std::size_t arrow = equation.find("->");
  if (arrow == std::string::npos || equation.find('.') != std::string::npos) return;
  std::map<char, OnnxExtent> extents;
  std::size_t input = 0, axis = 0;
  for (const char letter : equation.substr(0, arrow)) {
    if (letter == ',') {
      ++input;
      axis = 0;
      continue;
    }
    if (!node.rank(input) || axis >= *node.rank(input)) return;
    const OnnxExtent& extent = (*node.shape(input))[axis++];
    const auto [entry, isNew] = extents.emplace(letter, extent);
    if (!isNew) node.symbols().equate(entry->second, extent);
  }
  OnnxExtents shape;
  for (const char letter : equation.substr(arrow + 2)) {
    const auto found = extents.find(letter);
    if (found == extents.end()) return;
    shape.push_back(found->second);
  }
  node.setShape(0, std::move(shape));
}

// ---- tables

void constant(Node& node) {
  constexpr std::array kLists = {std::pair("value_ints", Tensor::INT64), std::pair("value_floats", Tensor::FLOAT)};
  constexpr std::array kNumbers = {std::pair("value_int", Tensor::INT64), std::pair("value_float", Tensor::FLOAT)};
  if (const auto* const value = findAttribute(node.node(), "value")) {
    node.setType(0, value->t().data_type());
    node.setShape(0, OnnxExtents(value->t().dims().begin(), value->t().dims().end()));
  }
  for (const auto& [name, type] : kNumbers)
    if (findAttribute(node.node(), name)) {
      node.setType(0, type);
      node.setShape(0, OnnxExtents{});
    }
  for (const auto& [name, type] : kLists)
    if (const auto* const list = findAttribute(node.node(), name)) {
      node.setType(0, type);
      node.setShape(0, OnnxExtents{std::max(list->ints_size(), list->floats_size())});
    }
}

const std::map<std::string_view, Rule>& rules() {
  static const std::map<std::string_view, Rule> kRules = [] {
    std::map<std::string_view, Rule> rules;
    const auto add = [&](Rule rule, std::initializer_list<const char*> types) {
      for (const char* const type : types) rules.emplace(type, rule);
    };
    add(sameAsFirst, {"Abs",
                      "Acos",
                      "Acosh",
                      "Asin",
                      "Asinh",
                      "Atan",
                      "Atanh",
                      "BatchNormalization",
                      "BiasGelu",
                      "BitwiseNot",
                      "Ceil",
                      "Celu",
                      "Clip",
                      "Cos",
                      "Cosh",
                      "CumSum",
                      "Elu",
                      "Erf",
                      "Exp",
                      "FastGelu",
                      "Floor",
                      "Gelu",
                      "GroupNorm",
                      "GroupNormalization",
                      "HardSigmoid",
                      "HardSwish",
                      "Hardmax",
                      "Identity",
                      "InstanceNormalization",
                      "LRN",
                      "LeakyRelu",
                      "Log",
                      "LogSoftmax",
                      "LpNormalization",
                      "MeanVarianceNormalization",
                      "Mish",
                      "Neg",
                      "Not",
                      "PRelu",
                      "QuickGelu",
                      "Reciprocal",
                      "Relu",
                      "ReverseSequence",
                      "RotaryEmbedding",
                      "Round",
                      "Scatter",
                      "ScatterElements",
                      "ScatterND",
                      "Selu",
                      "Shrink",
                      "Sigmoid",
                      "Sign",
                      "Sin",
                      "Sinh",
                      "Softmax",
                      "Softplus",
                      "Softsign",
                      "Sqrt",
                      "Swish",
                      "Tan",
                      "Tanh",
                      "TensorScatter",
                      "ThresholdedRelu",
                      "Trilu"});
    add(broadcastAll, {"Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Max", "Mean", "Min",
                       "Mod", "Mul", "Or", "Pow", "Sub", "Sum", "Xor"});
    add(comparison, {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"});
    add(predicate, {"IsInf", "IsNaN"});
    add(normalization, {"LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"});
    add(skipNormalization, {"SkipLayerNormalization", "SkipSimplifiedLayerNormalization"});
    add(matMul, {"FusedMatMul", "Gemm", "GemmFloat8", "FusedGemm", "MatMul"});
    add(floatIntegerMatMul, {"DynamicQuantizeMatMul", "MatMulIntegerToFloat"});
    add(convolution, {"Conv", "FusedConv"});
    add(pool, {"AveragePool", "LpPool", "MaxPool"});
    add(globalPool, {"GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"});
    add(reduction, {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
                    "ReduceProd", "ReduceSum", "ReduceSumSquare"});
    add(argument, {"ArgMax", "ArgMin"});
    add(random, {"RandomNormal", "RandomUniform"});
    add(likeInput, {"Bernoulli", "EyeLike", "RandomNormalLike", "RandomUniformLike"});
    add(recurrent, {"GRU", "LSTM", "RNN"});
    add(resize, {"Resize", "Upsample"});
    add(sameAsSecond, {"GatherElements", "MaxUnpool"});
    rules.insert({{"Attention", attention},
                  {"Cast", cast},
                  {"CastLike", castLike},
                  {"Concat", concat},
                  {"Constant", constant},
                  {"ConstantOfShape", constantOfShape},
                  {"ConvInteger", integerConvolution},
                  {"ConvTranspose", transposedConvolution},
                  {"DepthToSpace", depthToSpace},
                  {"DequantizeLinear", dequantize},
                  {"Dropout", dropout},
                  {"DynamicQuantizeLinear", dynamicQuantize},
                  {"Einsum", einsum},
                  {"EmbedLayerNormalization", embedLayerNormalization},
                  {"Expand", expand},
                  {"Flatten", flatten},
                  {"Gather", gather},
                  {"GatherND", gatherNd},
                  {"GroupQueryAttention", groupQueryAttention},
                  {"MatMulInteger", integerMatMul},
                  {"MatMulNBits", matMulOfBits},
                  {"MultiHeadAttention", multiHeadAttention},
                  {"NonZero", nonZero},
                  {"OneHot", oneHot},
                  {"Pad", pad},
                  {"QLinearConv", quantizedConvolution},
                  {"QLinearMatMul", quantizedMatMul},
                  {"QuantizeLinear", quantize},
                  {"Range", range},
                  {"Reshape", reshape},
                  {"Shape", shapeOfInput},
                  {"Size", sizeOfInput},
                  {"Slice", slice},
                  {"SpaceToDepth", spaceToDepth},
                  {"Split", split},
                  {"Squeeze", squeeze},
                  {"Tile", tile},
                  {"TopK", topK},
                  {"Transpose", transpose},
                  {"Unsqueeze", unsqueeze},
                  {"Where", whereRule}});
    return rules;
  }();
  return kRules;
}

}  // namespace

}  // namespace onnx_shapes

void inferOnnxNode(OnnxNodeFacts& node) {
  if (node.outputs().empty()) return;
  const std::string &type = node.node().op_type(), &domain = node.node().domain();
  const bool isKnown = domain.empty() || domain == "ai.onnx" || domain.starts_with("com.microsoft");
  const auto rule = onnx_shapes::rules().find(type);
  if (!isKnown || rule == onnx_shapes::rules().end()) return;
  for (std::size_t output = 0; output < node.numOutputs(); ++output) node.setType(output, node.input(0).elementType);
  if (type == "Attention" && domain == "com.microsoft") return onnx_shapes::packedAttention(node);
  rule->second(node);
}

}  // namespace fuseline
