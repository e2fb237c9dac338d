// Linear transformation without bias: y = x W^T.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/operation.h"
#include "core/ops/parameters.h"
#include "core/ops/reference_math.h"
#include "core/ops/shared_attributes.h"
#include "core/ops/tensor_parallel.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace fuseline::ops {

namespace {
namespace basic_linear_parts {

using Mode = TensorParallelism::Mode;

/// Sequence parallelism splits the first axis, which must not be that of the features.
Result<Shape> outputRows(const TensorParallelism& parallel, const TensorSpec& x, std::int64_t ranks) {
  if (!parallel.isSequenceParallel) return x.shape;
  if (x.shape.size() < 2)
    return Error{
        fmt::format("BasicLinear: sequence_parallel splits the first axis of x, but x has the shape {}, "
                    "features only; it needs at least two axes.",
                    toString(x.shape))};
  return parallel.mode == Mode::Column ? gathered("BasicLinear", x.shape, ranks)
                                       : scattered("BasicLinear", x.shape, ranks);
}

/// The weight's shape on one rank: column splits its rows, row its columns.
Result<Shape> weightShape(const Attributes& attributes, const TensorParallelism& parallel, std::int64_t ranks) {
  const std::int64_t rowRanks = parallel.mode == Mode::Row ? ranks : 1;
  const std::int64_t columnRanks = parallel.mode == Mode::Column ? ranks : 1;
  const auto N = shareOf("BasicLinear", "out_features", attributes.integer("out_features"), columnRanks);
  if (!N) return N.error();
  const auto K = shareOf("BasicLinear", "in_features", attributes.integer("in_features"), rowRanks);
  if (!K) return K.error();
  return Shape{*N, *K};
}

Result<OperationSpecs> infer(const Attributes& attributes, std::span<const TensorSpec> inputs, std::int64_t ranks) {
  const TensorSpec& x = inputs[0];
  const TensorParallelism parallel = tensorParallelism(attributes, ranks);
  const Result<Shape> weight = weightShape(attributes, parallel, ranks);
  if (!weight) return weight.error();
  const char* const features = parallel.mode == Mode::Row ? "in_features of one rank" : "in_features";
  if (auto error = checkLastAxis("BasicLinear", features, weight->back(), x)) return *error;
  Result<Shape> shape = outputRows(parallel, x, ranks);
  if (!shape) return shape.error();
  shape->back() = weight->front();
  const DType dtype = parameterDType(attributes, x);
  return OperationSpecs{.outputs = {{.dtype = dtype, .shape = std::move(*shape)}},
                        .parameters = {{.dtype = dtype, .shape = *weight}}};
}

FlopCount flops(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const std::int64_t N = attributes.integer("out_features");
  const std::int64_t onePass = saturatedProduct(2 * N, inputs[0].numElements());  // a multiplication and an addition
  return {.forward = onePass, .backward = 2 * onePass, .dgrad = onePass, .wgrad = onePass};
}

/// U(-1/sqrt(K), 1/sqrt(K)) with the K of this rank: Kaiming uniform with a = sqrt(5).
Initialisation initialiseWeight(const Attributes&, const TensorSpec& weight) {
  const auto K = static_cast<double>(weight.cols());
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

/// A gradient whose operand was not saved is not requested and stays empty.
ReferenceBackward backward(const Attributes&, const SavedValues& saved, std::span<const ReferenceTensor> gradOutputs) {
  const ReferenceTensor& dy = gradOutputs[0];
  ReferenceBackward gradients{.inputs = {{}}, .parameters = {{}}};
  if (saved.has({OperandKind::Parameter, 0})) gradients.inputs[0] = multiply(dy, saved.parameter());
  if (saved.has({OperandKind::Input, 0})) gradients.parameters[0] = outerProductSum(dy, saved.input());
  return gradients;
}

}  // namespace basic_linear_parts
}  // namespace

BasicOperation basic_linear() {
  using namespace basic_linear_parts;
  BasicOperation op{
      .name = "BasicLinear",
      .category = "Linear",
      .summary = "Multiplies every row by a weight matrix, without a bias.",
      .formula = "y = x W^T",
      .derivative = "dx = dy W; dW = dy^T x, summed over all rows",
      .source = "Initialisation: He et al. 2015, arXiv:1502.01852, with a = sqrt(5): U(-1/sqrt(K), 1/sqrt(K))",
      .keywords = {"matmul", "gemm", "fc", "dense", "projection", "fully connected"},
      .note = userbuffersNote,
      .inputs = {{"x", "[..., K]", "K is in_features."}},
      .parameters = {{"weight", "[N, K]", "One row for each output feature.", initialiseWeight, true}},
      .outputs = {{"y", "[..., N]", "N is out_features; the dtype is the weight's."}},
      .attributes = {featuresAttribute("in_features", "Elements of each input row, K."),
                     featuresAttribute("out_features", "Elements of each output row, N."), dtypeAttribute(),
                     tensorParallelModeAttribute(), sequenceParallelAttribute(), userbuffersAttribute()},
      .inferOnRanks = infer,
      .flops = flops,
      .forwardCompute = forward,
      .saveContext = saveContext,
      .backwardCompute = backward,
      .isQuantizable = true,
  };
  std::ranges::move(mainGradAttributes(), std::back_inserter(op.attributes));
  return inferredOnRanks(std::move(op));
}

}  // namespace fuseline::ops
