// Drops elements at random and scales the others up: y = x mask / (1 - p). The mask is a function of the seed, the op's
// id and the element's index, so backward makes it again instead of keeping it. Outside training x passes as it is.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/operation.h"
#include "core/ops/rank_attributes.h"
#include "core/ops/reference_math.h"
#include "core/ops/shared_attributes.h"

#include <fmt/format.h>

namespace fuseline::ops {

namespace {
namespace dropout_parts {

constexpr const char* kMaskName = "mask_name";  // set when a graph is finished

DropoutMask maskOf(const Attributes& attributes) {
  return {attributes.real("p"), static_cast<std::uint64_t>(attributes.integer("seed")),
          attributes.has(kMaskName) ? attributes.text(kMaskName) : "",
          attributes.has(kFirstElementAttribute)
              ? static_cast<std::uint64_t>(attributes.integer(kFirstElementAttribute))
              : 0};
}

double keptScale(const Attributes& attributes) { return 1.0 / (1.0 - attributes.real("p")); }

void settle(Attributes& attributes, const GraphPlace& place) {
  attributes.set(kMaskName, fmt::format("{}.mask", place.id));
  if (!place.isTraining) attributes.set("p", 0.0);
}

Result<OperationSpecs> infer(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const double p = attributes.real("p");
  if (!(p >= 0.0 && p < 1.0))
    return Error{fmt::format("Dropout: p is {}, but it must be at least 0 and less than 1.", p)};
  return OperationSpecs{.outputs = {inputs[0]}};
}

FlopCount flops(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const std::int64_t elements = attributes.real("p") == 0.0 ? 0 : inputs[0].numElements();
  return {.forward = elements, .backward = elements};
}

/// x, with dropped elements times 0 and the others scaled up. NaN stays NaN.
ReferenceTensor dropped(const Attributes& attributes, ReferenceTensor x) {
  const DropoutMask mask = maskOf(attributes);
  const double kept = keptScale(attributes);
  for (std::size_t i = 0; i < x.values.size(); ++i) x.values[i] *= mask.keeps(i) ? kept : 0.0;
  return x;
}

ReferenceForward forward(const Attributes& attributes, std::span<const ReferenceTensor> inputs,
                         std::span<const ReferenceTensor>) {
  return {.outputs = {dropped(attributes, inputs[0])}};
}

ReferenceBackward backward(const Attributes& attributes, const SavedValues&,
                           std::span<const ReferenceTensor> gradOutputs) {
  return {.inputs = {dropped(attributes, gradOutputs[0])}};
}

ValueIndex droppedExpression(ElementwiseBuilder& e, const Attributes& attributes, ValueIndex x) {
  if (attributes.real("p") == 0.0) return x;
  return e.mul(x, e.dropout(maskOf(attributes), keptScale(attributes)));
}

void defineForward(ElementwiseBuilder& e, const Attributes& attributes) {
  e.output(0, droppedExpression(e, attributes, e.input()));
}

void defineBackward(ElementwiseBuilder& e, const Attributes& attributes) {
  e.gradInput(0, droppedExpression(e, attributes, e.gradOutput()));
}

}  // namespace dropout_parts
}  // namespace

BasicOperation dropout() {
  using namespace dropout_parts;
  return {
      .name = "Dropout",
      .category = "Structure",
      .summary =
          "In training, sets elements to 0 at random and scales the others by 1 / (1 - p); in inference passes x "
          "through.",
      .formula = "y = x mask / (1 - p), mask 0 with probability p, else 1",
      .derivative = "dx = dy mask / (1 - p), with the same mask, which is recomputed, not kept",
      .source =
          "Srivastava et al. 2014, JMLR 15; TransformerEngine te.ops.Dropout, which rounds p down to a multiple of "
          "1/256, whereas p is exact to 2^-32 in Fuseline; mask: Philox4x32-10, Salmon et al. 2011",
      .keywords = {"regularization", "random", "mask", "noise", "bernoulli"},
      .inputs = {{"x", "[...]", "Any shape."}},
      .outputs = {{"y", "[...]", "The shape and dtype of x."}},
      .attributes = {{.name = "p",
                      .type = AttributeType::Real,
                      .minimum = 0.0,
                      .maximum = 1.0,
                      .help = "Probability that an element is dropped; less than 1."},
                     {.name = "seed",
                      .type = AttributeType::Integer,
                      .defaultValue = std::int64_t{0},
                      .minimum = 0,
                      .help = "Seed of the mask, together with the op's id. The mask is the same in every run."}},
      .settle = settle,
      .infer = infer,
      .flops = flops,
      .forwardCompute = forward,
      .saveContext = saveNothing,
      .backwardCompute = backward,
      .elementwise = {.forward = defineForward, .backward = defineBackward},
  };
}

}  // namespace fuseline::ops
