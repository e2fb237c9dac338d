// Passes its input on twice: along the main branch and to an extra output. The start of a residual connection.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/operation.h"
#include "core/ops/reference_math.h"
#include "core/ops/shared_attributes.h"

#include <functional>

namespace fuseline::ops {

namespace {
namespace make_extra_output_parts {

Result<OperationSpecs> infer(const Attributes&, std::span<const TensorSpec> inputs) {
  return OperationSpecs{.outputs = {inputs[0], inputs[0]}};
}

FlopCount flops(const Attributes&, std::span<const TensorSpec> inputs) {
  return {.forward = 0, .backward = inputs[0].numElements()};
}

ReferenceForward forward(const Attributes&, std::span<const ReferenceTensor> inputs, std::span<const ReferenceTensor>) {
  return {.outputs = {inputs[0], inputs[0]}};
}

ReferenceBackward backward(const Attributes&, const SavedValues&, std::span<const ReferenceTensor> gradOutputs) {
  return {.inputs = {combined(gradOutputs[0], gradOutputs[1], std::plus<>())}};
}

void defineForward(ElementwiseBuilder& e, const Attributes&) {
  e.output(0, e.input());
  e.output(1, e.input());
}

void defineBackward(ElementwiseBuilder& e, const Attributes&) {
  const ValueIndex dy = e.gradOutput(0);
  const ValueIndex dextra = e.gradOutput(1);
  e.gradInput(0, e.add(dy, dextra));
}

}  // namespace make_extra_output_parts
}  // namespace

BasicOperation make_extra_output() {
  using namespace make_extra_output_parts;
  return {
      .name = "MakeExtraOutput",
      .category = "Structure",
      .summary = "Passes its input to two outputs, such as a layer and its residual connection.",
      .formula = "y = x; extra = x",
      .derivative = "dx = dy + dextra",
      .source = "TransformerEngine te.ops.MakeExtraOutput",
      .keywords = {"residual", "branch", "split", "fork", "copy", "skip", "shortcut"},
      .inputs = {{"x", "[...]", "Any shape."}},
      .outputs = {{"y", "[...]", "x, on the main branch."}, {"extra", "[...]", "x, on the second branch."}},
      .attributes = {inPlaceAttribute("Backward adds into the gradient of extra instead of a new tensor. "
                                      "TransformerEngine fuses that addition into a linear only with true, into an "
                                      "RMSNorm only with false.")},
      .infer = infer,
      .flops = flops,
      .forwardCompute = forward,
      .saveContext = saveNothing,
      .backwardCompute = backward,
      .elementwise = {.forward = defineForward, .backward = defineBackward},
  };
}

}  // namespace fuseline::ops
