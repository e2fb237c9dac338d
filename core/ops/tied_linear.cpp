// Linear transformation by a weight that another op owns, such as the table of an embedding.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/operation.h"
#include "core/ops/reference_math.h"
#include "core/ops/shared_attributes.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline::ops {

namespace {
namespace tied_linear_parts {

constexpr const char* kName = "TiedLinear";

Result<OperationSpecs> infer(const Attributes&, Specs inputs) {
  const TensorSpec& x = inputs[0];
  const TensorSpec& weight = inputs[1];
  if (x.shape.empty() || weight.shape.size() != 2 || weight.shape[1] != x.cols())
    return Error{fmt::format("{}: weight has the shape {}, but x has the shape {}; expected a weight [N, {}].", kName,
                             toString(weight.shape), toString(x.shape), x.cols())};
  if (weight.dtype != x.dtype)
    return Error{fmt::format("{}: weight is {}, but x is {}; both must have one dtype.", kName, dtypeName(weight.dtype),
                             dtypeName(x.dtype))};
  TensorSpec y = x;
  y.shape.back() = weight.shape[0];
  return OperationSpecs{.outputs = {y}};
}

FlopCount flops(const Attributes&, Specs inputs) {
  const std::int64_t onePass = saturatedProduct(2 * inputs[1].shape[0], inputs[0].numElements());
  return {.forward = onePass, .backward = 2 * onePass, .dgrad = onePass, .wgrad = onePass};
}

ReferenceForward forward(const Attributes&, References inputs, References) {
  return {.outputs = {multiplyTransposed(inputs[0], inputs[1])}};
}

/// The weight for the gradient of x, x for that of the weight.
OperationContext saveContext(const SaveArguments& arguments) {
  OperationContext context;
  if (arguments.needs.inputs[1]) context.tensors.push_back({OperandKind::Input, 0});
  if (arguments.needs.inputs[0]) context.tensors.push_back({OperandKind::Input, 1});
  return context;
}

ReferenceBackward backward(const Attributes&, const SavedValues& saved, References gradOutputs) {
  ReferenceBackward gradients{.inputs = {{}, {}}};
  if (saved.has({OperandKind::Input, 1})) gradients.inputs[0] = multiply(gradOutputs[0], saved.input(1));
  if (saved.has({OperandKind::Input, 0})) gradients.inputs[1] = outerProductSum(gradOutputs[0], saved.input(0));
  return gradients;
}

OperationCall exampleCall(std::int64_t elements, DType dtype) {
  constexpr std::int64_t kWidth = 1024;
  OperationCall call;
  call.inputs = {{.dtype = dtype, .shape = {std::max<std::int64_t>(1, elements / kWidth), kWidth}},
                 {.dtype = dtype, .shape = {kWidth, kWidth}}};
  return call;
}

}  // namespace tied_linear_parts
}  // namespace

BasicOperation tied_linear() {
  using namespace tied_linear_parts;
  return {
      .name = kName,
      .category = "Model",
      .summary = "Multiplies every row by a weight of another op, such as the table of an Embedding (a tied head).",
      .formula = "y = x W^T",
      .derivative = "dx = dy W; dW = dy^T x, summed over all rows",
      .source = "Press & Wolf 2017, arXiv:1608.05859",
      .keywords = {"tied", "lm_head", "head", "logits", "projection", "unembedding"},
      .inputs = {{"x", "[..., K]", "Any rows."}, {"weight", "[N, K]", "Such as the output weight of an Embedding."}},
      .outputs = {{"y", "[..., N]", "The dtype of x."}},
      .infer = infer,
      .flops = flops,
      .forwardCompute = forward,
      .saveContext = saveContext,
      .backwardCompute = backward,
      .exampleCall = exampleCall,
  };
}

}  // namespace fuseline::ops
