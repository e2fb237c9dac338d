// Linear transformation without bias: y = x W^T.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/operation.h"
#include "core/ops/reference_math.h"
#include "core/ops/shared_attributes.h"

#include <cmath>

namespace fuseline::ops {

namespace {

Result<OperationSpecs> infer(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const TensorSpec& x = inputs[0];
  const std::int64_t K = attributes.integer("in_features");
  const std::int64_t N = attributes.integer("out_features");
  if (auto error = checkLastAxis("BasicLinear", "in_features", K, x)) return *error;
  const DType dtype = parameterDType(attributes, x);
  TensorSpec y{.dtype = dtype, .shape = x.shape};
  y.shape.back() = N;
  return OperationSpecs{.outputs = {y}, .parameters = {{.dtype = dtype, .shape = {N, K}}}};
}

FlopCount flops(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const std::int64_t N = attributes.integer("out_features");
  const std::int64_t onePass = 2 * inputs[0].numElements() * N;  // a multiplication and an addition
  return {.forward = onePass, .backward = 2 * onePass};
}

/// U(-1/sqrt(K), 1/sqrt(K)): Kaiming uniform with a = sqrt(5).
Initialisation initialiseWeight(const Attributes& attributes, const TensorSpec&) {
  const auto K = static_cast<double>(attributes.integer("in_features"));
  return {.kind = Initialisation::Kind::Uniform, .value = 1.0 / std::sqrt(K)};
}

ReferenceForward forward(const Attributes&, std::span<const ReferenceTensor> inputs,
                         std::span<const ReferenceTensor> parameters) {
  return {.outputs = {multiplyTransposed(inputs[0], parameters[0])}};
}

/// The weight for the input gradient, the input for the weight gradient.
OperationContext saveContext(const SaveArguments& arguments) {
  OperationContext context;
  if (arguments.needs.parameters[0]) context.tensors.push_back({OperandKind::Input, 0});
  if (arguments.needs.inputs[0]) context.tensors.push_back({OperandKind::Parameter, 0});
  return context;
}

/// A gradient whose operand was not saved is nobody's need and stays empty.
ReferenceBackward backward(const Attributes&, const SavedValues& saved, std::span<const ReferenceTensor> gradOutputs) {
  const ReferenceTensor& dy = gradOutputs[0];
  ReferenceBackward gradients{.inputs = {{}}, .parameters = {{}}};
  if (saved.has({OperandKind::Parameter, 0})) gradients.inputs[0] = multiply(dy, saved.parameter());
  if (saved.has({OperandKind::Input, 0})) gradients.parameters[0] = outerProductSum(dy, saved.input());
  return gradients;
}

}  // namespace

BasicOperation basic_linear() {
  return {
      .name = "BasicLinear",
      .category = "Linear",
      .summary = "Multiplies every row by a weight matrix, without a bias.",
      .formula = "y = x W^T",
      .derivative = "dx = dy W; dW = dy^T x, summed over all rows",
      .source = "Initialisation: He et al. 2015, arXiv:1502.01852, with a = sqrt(5): U(-1/sqrt(K), 1/sqrt(K))",
      .keywords = {"matmul", "gemm", "fc", "dense", "projection", "fully connected"},
      .inputs = {{"x", "[..., K]", "K is in_features."}},
      .parameters = {{"weight", "[N, K]", "One row for each output feature.", initialiseWeight}},
      .outputs = {{"y", "[..., N]", "N is out_features; the dtype is the weight's."}},
      .attributes = {featuresAttribute("in_features", "Elements of each input row, K."),
                     featuresAttribute("out_features", "Elements of each output row, N."), dtypeAttribute(),
                     tensorParallelModeAttribute()},
      .infer = infer,
      .flops = flops,
      .forwardCompute = forward,
      .saveContext = saveContext,
      .backwardCompute = backward,
  };
}

}  // namespace fuseline::ops
