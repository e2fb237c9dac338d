// Shapes of what is reduced along axes.
// Source: github.com/onnx/onnx, docs/Operators.md; github.com/microsoft/onnxruntime, docs/ContribOperators.md.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_shape_rules.h"

namespace fuseline::onnx_shapes {

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

namespace {

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

/// A loss for each place, or for all of them.
void loss(Node& node) {
  node.setShape(0, textOf(node.node(), "reduction", "mean") == "none" ? node.shape(1) : OnnxExtents{});
  node.setShape(1, node.shape(0));
}

}  // namespace

OnnxShapeRules reductionShapes() {
  return {
      {argument, "ArgMax ArgMin"},
      {loss, "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss"},
      {reduction,
       "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd "
       "ReduceSum ReduceSumSquare"},
      {topK, "TopK"},
  };
}

}  // namespace fuseline::onnx_shapes
