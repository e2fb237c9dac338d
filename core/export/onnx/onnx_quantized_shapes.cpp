// Shapes and types of what is quantized, and of operators that compute with integers.
// Source: github.com/onnx/onnx, docs/Operators.md; github.com/microsoft/onnxruntime, docs/ContribOperators.md.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_shape_rules.h"

namespace fuseline::onnx_shapes {

namespace {

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

void integerMatMul(Node& node) {
  matMul(node);
  node.setType(0, Tensor::INT32);
}

/// The result has the type of its zero point; without one it is floating point.
void setQuantizedType(Node& node, std::size_t zeroPoint) {
  node.setType(0, node.has(zeroPoint) ? node.input(zeroPoint).elementType : std::int32_t{Tensor::FLOAT});
}

/// a, its scale and zero point, b with the same, scale and zero point of the result.
void quantizedMatMul(Node& node) {
  matMulOf(node, 0, 3);
  setQuantizedType(node, 7);
}

/// The same with a bias before the scale of the result.
void quantizedGemm(Node& node) {
  matMulOf(node, 0, 3);
  setQuantizedType(node, 8);
}

void integerConvolution(Node& node) {
  convolutionBy(node, 1);
  node.setType(0, Tensor::INT32);
}

void quantizedConvolution(Node& node) {
  convolutionBy(node, 3);
  node.setType(0, node.input(7).elementType);
}

/// Sum or product of two that are quantized.
void quantizedSum(Node& node) {
  if (node.shape(0) && node.shape(3)) node.setShape(0, broadcastOf(*node.shape(0), *node.shape(3), node.symbols()));
}

/// Triples of tensor, scale and zero point, after scale and zero point of the result.
void quantizedConcat(Node& node) {
  node.setType(0, node.input(1).elementType);
  if (!node.rank(2)) return;
  const std::optional<std::size_t> axis = axisOf(node.integer("axis", 0), *node.rank(2));
  if (!axis) return;
  OnnxExtents shape = *node.shape(2);
  for (std::size_t input = 5; input < node.numInputs(); input += 3) {
    if (node.rank(input) != node.rank(2)) return;
    shape[*axis] = shape[*axis] + (*node.shape(input))[*axis];
  }
  node.setShape(0, std::move(shape));
}

void quantizedGlobalPool(Node& node) {
  if (!node.rank(0) || *node.rank(0) < 3) return;
  OnnxExtents shape = *node.shape(0);
  const bool isLast = node.integer("channels_last", 0) != 0;
  for (std::size_t axis = isLast ? 1 : 2; axis < shape.size() - (isLast ? 1 : 0); ++axis) shape[axis] = 1;
  node.setShape(0, std::move(shape));
}

}  // namespace

OnnxShapeRules quantizedShapes() {
  return {
      {dequantize, "DequantizeLinear"},
      {dynamicQuantize, "DynamicQuantizeLinear"},
      {integerConvolution, "ConvInteger"},
      {integerMatMul, "MatMulInteger"},
      {quantize, "QuantizeLinear"},
      {quantizedConcat, "QLinearConcat"},
      {quantizedConvolution, "QLinearConv"},
      {quantizedGemm, "QGemm"},
      {quantizedGlobalPool, "QLinearGlobalAveragePool"},
      {quantizedMatMul, "QLinearMatMul"},
      {quantizedSum, "QLinearAdd QLinearMul"},
      {reduction, "QLinearReduceMean"},
      {sameAsFirst, "QLinearLeakyRelu QLinearSigmoid QLinearSoftmax"},
  };
}

}  // namespace fuseline::onnx_shapes
