// Shapes of what operators make that only move elements.
// Source: github.com/onnx/onnx, docs/Operators.md; github.com/microsoft/onnxruntime, docs/ContribOperators.md.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_reshape_rule.h"
#include "core/export/onnx/onnx_shape_rules.h"

#include <algorithm>

namespace fuseline::onnx_shapes {

namespace {

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

/// Ends far outside are what exporters write for the end; where the number is that of the extent, it is the end, too.
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
  // Where the wanted extent is unknown, 1 may become anything.
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

}  // namespace

OnnxShapeRules movementShapes() {
  return {
      {concat, "Concat"},       {expand, "Expand"},
      {flatten, "Flatten"},     {gather, "Gather"},
      {gatherNd, "GatherND"},   {pad, "Pad"},
      {reshape, "Reshape"},     {sameAsSecond, "GatherElements MaxUnpool"},
      {slice, "Slice"},         {split, "Split"},
      {squeeze, "Squeeze"},     {tile, "Tile"},
      {transpose, "Transpose"}, {unsqueeze, "Unsqueeze"},
  };
}

}  // namespace fuseline::onnx_shapes
