// Multiplies by a number: y = x * scale.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/operation.h"
#include "core/ops/reference_math.h"
#include "core/ops/shared_attributes.h"

namespace fuseline::ops {

namespace {
namespace constant_scale_parts {

Result<OperationSpecs> infer(const Attributes&, std::span<const TensorSpec> inputs) {
  return OperationSpecs{.outputs = {inputs[0]}};
}

FlopCount flops(const Attributes&, std::span<const TensorSpec> inputs) {
  return {.forward = inputs[0].numElements(), .backward = inputs[0].numElements()};
}

ReferenceTensor scaled(const ReferenceTensor& x, const Attributes& attributes) {
  const double scale = attributes.real("scale");
  return mapped(x, [scale](double value) { return value * scale; });
}

ReferenceForward forward(const Attributes& attributes, std::span<const ReferenceTensor> inputs,
                         std::span<const ReferenceTensor>) {
  return {.outputs = {scaled(inputs[0], attributes)}};
}

ReferenceBackward backward(const Attributes& attributes, const SavedValues&,
                           std::span<const ReferenceTensor> gradOutputs) {
  return {.inputs = {scaled(gradOutputs[0], attributes)}};
}

ValueIndex scaled(ElementwiseBuilder& e, ValueIndex value, const Attributes& attributes) {
  const ValueIndex scale = e.constant(attributes.real("scale"));
  return e.mul(value, scale);
}

void defineForward(ElementwiseBuilder& e, const Attributes& attributes) {
  e.output(0, scaled(e, e.input(), attributes));
}

void defineBackward(ElementwiseBuilder& e, const Attributes& attributes) {
  e.gradInput(0, scaled(e, e.gradOutput(), attributes));
}

}  // namespace constant_scale_parts
}  // namespace

BasicOperation constant_scale() {
  using namespace constant_scale_parts;
  return {
      .name = "ConstantScale",
      .category = "Structure",
      .summary = "Multiplies every element by a number.",
      .formula = "y = x scale",
      .derivative = "dx = dy scale",
      .source = "TransformerEngine te.ops.ConstantScale",
      .keywords = {"multiply", "alpha", "factor", "scalar"},
      .inputs = {{"x", "[...]", "Any shape, scalars too."}},
      .outputs = {{"y", "[...]", "The shape and dtype of x."}},
      .attributes = {{.name = "scale", .type = AttributeType::Real, .help = "The factor: a constant of the pipeline."}},
      .infer = infer,
      .flops = flops,
      .forwardCompute = forward,
      .saveContext = saveNothing,
      .backwardCompute = backward,
      .elementwise = {.forward = defineForward, .backward = defineBackward},
  };
}

}  // namespace fuseline::ops
