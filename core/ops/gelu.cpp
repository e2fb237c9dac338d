// Gaussian error linear unit in its tanh form.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/operation.h"
#include "core/ops/reference_math.h"
#include "core/ops/shared_attributes.h"

namespace fuseline::ops {

namespace {

// By element, tanh counted as one operation.
constexpr std::int64_t kForwardFlops = 8;
constexpr std::int64_t kBackwardFlops = 15;

Result<OperationSpecs> infer(const Attributes&, std::span<const TensorSpec> inputs) {
  return OperationSpecs{.outputs = {inputs[0]}};
}

FlopCount flops(const Attributes&, std::span<const TensorSpec> inputs) {
  const std::int64_t elements = inputs[0].numElements();
  return {.forward = kForwardFlops * elements, .backward = kBackwardFlops * elements};
}

ReferenceForward forward(const Attributes&, std::span<const ReferenceTensor> inputs, std::span<const ReferenceTensor>) {
  return {.outputs = {mapped(inputs[0], reference::gelu)}};
}

ReferenceBackward backward(const Attributes&, const SavedValues& saved, std::span<const ReferenceTensor> gradOutputs) {
  return {.inputs = {combined(gradOutputs[0], saved.input(),
                              [](double dy, double x) { return dy * reference::geluGrad(x); })}};
}

void defineForward(ElementwiseBuilder& e, const Attributes&) { e.output(0, e.unary(Opcode::Gelu, e.input())); }

void defineBackward(ElementwiseBuilder& e, const Attributes&) {
  const ValueIndex dy = e.gradOutput();
  const ValueIndex slope = e.unary(Opcode::GeluGrad, e.savedInput());
  e.gradInput(0, e.mul(dy, slope));
}

}  // namespace

BasicOperation gelu() {
  return {
      .name = "GELU",
      .category = "Activation",
      .summary = "Gaussian error linear unit in its tanh form, as TransformerEngine computes it.",
      .formula = "y = x (0.5 + 0.5 tanh(x (0.79788456 + 0.03567741 x^2)))",
      .derivative =
          "dx = dy (0.5 x (1 - t^2) (0.79788456 + 0.1070322243 x^2) + 0.5 (1 + t)), t the tanh of the formula",
      .source = "Hendrycks & Gimpel 2016, arXiv:1606.08415; 0.79788456 = sqrt(2/pi)",
      .keywords = {"activation", "gaussian", "nonlinearity", "relu"},
      .inputs = {{"x", "[...]", "Any shape."}},
      .outputs = {{"y", "[...]", "The shape and dtype of x."}},
      .infer = infer,
      .flops = flops,
      .forwardCompute = forward,
      .saveContext = saveInput,
      .backwardCompute = backward,
      .elementwise = {.forward = defineForward, .backward = defineBackward},
  };
}

}  // namespace fuseline::ops
