// Passes its input on.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/operation.h"
#include "core/ops/reference_math.h"
#include "core/ops/shared_attributes.h"

namespace fuseline::ops {

namespace {
namespace identity_parts {

Result<OperationSpecs> infer(const Attributes&, std::span<const TensorSpec> inputs) {
  return OperationSpecs{.outputs = {inputs[0]}};
}

FlopCount flops(const Attributes&, std::span<const TensorSpec>) { return {}; }

ReferenceForward forward(const Attributes&, std::span<const ReferenceTensor> inputs, std::span<const ReferenceTensor>) {
  return {.outputs = {inputs[0]}};
}

ReferenceBackward backward(const Attributes&, const SavedValues&, std::span<const ReferenceTensor> gradOutputs) {
  return {.inputs = {gradOutputs[0]}};
}

void defineForward(ElementwiseBuilder& e, const Attributes&) { e.output(0, e.input()); }

void defineBackward(ElementwiseBuilder& e, const Attributes&) { e.gradInput(0, e.gradOutput()); }

}  // namespace identity_parts
}  // namespace

BasicOperation identity() {
  using namespace identity_parts;
  return {
      .name = "Identity",
      .category = "Structure",
      .summary = "Passes its input on unchanged.",
      .formula = "y = x",
      .derivative = "dx = dy",
      .source = "TransformerEngine te.ops.Identity",
      .keywords = {"pass", "noop", "nothing", "placeholder"},
      .inputs = {{"x", "[...]", "Any shape."}},
      .outputs = {{"y", "[...]", "x itself."}},
      .infer = infer,
      .flops = flops,
      .forwardCompute = forward,
      .saveContext = saveNothing,
      .backwardCompute = backward,
      .elementwise = {.forward = defineForward, .backward = defineBackward},
  };
}

}  // namespace fuseline::ops
