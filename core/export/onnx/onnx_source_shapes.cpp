// Shapes of what is made of nothing, of shapes, or of indices.
// Source: github.com/onnx/onnx, docs/Operators.md; github.com/microsoft/onnxruntime, docs/ContribOperators.md.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_shape_rules.h"

#include <algorithm>
#include <array>

namespace fuseline::onnx_shapes {

namespace {

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

}  // namespace

OnnxShapeRules sourceShapes() {
  return {
      {constant, "Constant"},
      {constantOfShape, "ConstantOfShape"},
      {likeInput, "Bernoulli EyeLike RandomNormalLike RandomUniformLike"},
      {nonZero, "NonZero"},
      {oneHot, "OneHot"},
      {random, "RandomNormal RandomUniform"},
      {range, "Range"},
      {shapeOfInput, "Shape"},
      {sizeOfInput, "Size"},
  };
}

}  // namespace fuseline::onnx_shapes
