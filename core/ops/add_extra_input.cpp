// Adds a second tensor to the main branch: y = x + extra. The end of a residual connection.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/operation.h"
#include "core/ops/reference_math.h"
#include "core/ops/shared_attributes.h"

#include <functional>

#include <fmt/format.h>

namespace fuseline::ops {

namespace {
namespace add_extra_input_parts {

/// In place the sum lives in the extra tensor, so it has its dtype.
DType outputDType(const Attributes& attributes, const TensorSpec& x, const TensorSpec& extra) {
  return attributes.boolean("in_place") ? extra.dtype : promoted(x.dtype, extra.dtype);
}

Result<OperationSpecs> infer(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const TensorSpec& x = inputs[0];
  const TensorSpec& extra = inputs[1];
  if (x.shape != extra.shape)
    return Error{fmt::format("AddExtraInput: extra has the shape {}, but x has the shape {}; both must be the same.",
                             toString(extra.shape), toString(x.shape))};
  return OperationSpecs{.outputs = {{.dtype = outputDType(attributes, x, extra), .shape = x.shape}}};
}

FlopCount flops(const Attributes&, std::span<const TensorSpec> inputs) {
  return {.forward = inputs[0].numElements(), .backward = 0};
}

ReferenceForward forward(const Attributes&, std::span<const ReferenceTensor> inputs, std::span<const ReferenceTensor>) {
  return {.outputs = {combined(inputs[0], inputs[1], std::plus<>())}};
}

ReferenceBackward backward(const Attributes&, const SavedValues&, std::span<const ReferenceTensor> gradOutputs) {
  return {.inputs = {gradOutputs[0], gradOutputs[0]}};
}

void defineForward(ElementwiseBuilder& e, const Attributes&) {
  const ValueIndex x = e.input(0);
  const ValueIndex extra = e.input(1);
  e.output(0, e.add(x, extra));
}

void defineBackward(ElementwiseBuilder& e, const Attributes&) {
  e.gradInput(0, e.gradOutput());
  e.gradInput(1, e.gradOutput());
}

}  // namespace add_extra_input_parts
}  // namespace

BasicOperation add_extra_input() {
  using namespace add_extra_input_parts;
  return {
      .name = "AddExtraInput",
      .category = "Structure",
      .summary = "Adds a second tensor to the main branch, such as the residual of a block.",
      .formula = "y = x + extra",
      .derivative = "dx = dy; dextra = dy",
      .source = "TransformerEngine te.ops.AddExtraInput",
      .keywords = {"residual", "add", "sum", "skip", "shortcut", "join"},
      .inputs = {{"x", "[...]", "The main branch."}, {"extra", "[...]", "Same shape as x."}},
      .outputs = {{"y", "[...]",
                   "The sum, in the dtype of x and extra, or f32 if they differ; with in_place, in that of extra."}},
      .attributes = {inPlaceAttribute("The sum overwrites extra and has its dtype. TransformerEngine fuses the "
                                      "addition into a linear only in this form.")},
      .infer = infer,
      .flops = flops,
      .forwardCompute = forward,
      .saveContext = saveNothing,
      .backwardCompute = backward,
      .elementwise = {.forward = defineForward, .backward = defineBackward},
  };
}

}  // namespace fuseline::ops
