// Shapes of what elementwise operators and normalizations make.
// Source: github.com/onnx/onnx, docs/Operators.md; github.com/microsoft/onnxruntime, docs/ContribOperators.md.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/onnx/onnx_shape_rules.h"

#include <algorithm>

namespace fuseline::onnx_shapes {

namespace {

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

/// Behind the normalized tensor: mean and deviation, and the sum that was normalized.
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

}  // namespace

OnnxShapeRules elementwiseShapes() {
  return {
      {sameAsFirst,
       "Abs Acos Acosh Asin Asinh Atan Atanh BatchNormalization BiasAdd BiasGelu BiasSoftmax BitwiseNot "
       "Ceil Celu Clip Cos Cosh CumProd CumSum Elu Erf Exp FastGelu Floor Gelu GroupNorm "
       "GroupNormalization HardSigmoid HardSwish Hardmax Identity InstanceNormalization Inverse LRN "
       "LeakyRelu Log LogSoftmax LpNormalization MeanVarianceNormalization Mish MoE Neg Not PRelu QMoE "
       "QuickGelu Reciprocal Relu ReverseSequence RotaryEmbedding Round Scatter ScatterElements "
       "ScatterND Selu Shrink Sigmoid Sign Sin Sinh SkipGroupNorm Softmax Softplus Softsign Sqrt Swish "
       "Tan Tanh TensorScatter ThresholdedRelu Trilu"},
      {broadcastAll, "Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Max Mean Min Mod Mul Or Pow Sub Sum Xor"},
      {cast, "Cast"},
      {castLike, "CastLike"},
      {comparison, "Equal Greater GreaterOrEqual Less LessOrEqual"},
      {dropout, "BiasDropout Dropout"},
      {predicate, "IsInf IsNaN"},
      {normalization, "LayerNormalization RMSNormalization SimplifiedLayerNormalization"},
      {skipNormalization, "SkipLayerNormalization SkipSimplifiedLayerNormalization"},
      {whereRule, "Where"},
  };
}

}  // namespace fuseline::onnx_shapes
