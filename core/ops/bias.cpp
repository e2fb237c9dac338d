// Adds a learned vector to every row: y = x + b.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/operation.h"
#include "core/ops/reference_math.h"
#include "core/ops/shared_attributes.h"
#include "core/ops/tensor_parallel.h"

namespace fuseline::ops {

namespace {
namespace bias_parts {

Result<OperationSpecs> infer(const Attributes& attributes, std::span<const TensorSpec> inputs, std::int64_t ranks) {
  const TensorSpec& x = inputs[0];
  const bool isSplit = ranks > 1 && attributes.boolean("tensor_parallel");
  const Result<std::int64_t> size = shareOf("Bias", "size", attributes.integer("size"), isSplit ? ranks : 1);
  if (!size) return size.error();
  if (auto error = checkLastAxis("Bias", isSplit ? "size of one rank" : "size", *size, x)) return *error;
  const DType dtype = parameterDType(attributes, x);
  return OperationSpecs{.outputs = {{.dtype = promoted(x.dtype, dtype), .shape = x.shape}},
                        .parameters = {{.dtype = dtype, .shape = {*size}}}};
}

FlopCount flops(const Attributes&, std::span<const TensorSpec> inputs) {
  return {.forward = inputs[0].numElements(), .backward = inputs[0].numElements()};
}

Initialisation initialiseBias(const Attributes&, const TensorSpec&) { return {}; }

ReferenceForward forward(const Attributes&, std::span<const ReferenceTensor> inputs,
                         std::span<const ReferenceTensor> parameters) {
  ReferenceTensor y = inputs[0];
  const std::vector<double>& b = parameters[0].values;
  for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] += b[i % b.size()];
  return {.outputs = {y}};
}

ReferenceBackward backward(const Attributes&, const SavedValues&, std::span<const ReferenceTensor> gradOutputs) {
  return {.inputs = {gradOutputs[0]}, .parameters = {columnSums(gradOutputs[0])}};
}

void defineForward(ElementwiseBuilder& e, const Attributes&) {
  const ValueIndex x = e.input();
  const ValueIndex b = e.parameterRow();
  e.output(0, e.add(x, b));
}

void defineBackward(ElementwiseBuilder& e, const Attributes&) {
  e.gradInput(0, e.gradOutput());
  e.gradParameterColumnSum(0, e.gradOutput());
}

}  // namespace bias_parts
}  // namespace

BasicOperation bias() {
  using namespace bias_parts;
  return inferredOnRanks({
      .name = "Bias",
      .category = "Linear",
      .summary = "Adds a learned vector to every row.",
      .formula = "y = x + b",
      .derivative = "dx = dy; db = dy summed over all rows",
      .source = "TransformerEngine te.ops.Bias; the bias starts at 0",
      .keywords = {"add", "offset", "shift"},
      .inputs = {{"x", "[..., H]", "H is size."}},
      .parameters = {{"bias", "[H]", "Added to every row.", initialiseBias}},
      .outputs = {{"y", "[..., H]", "The result, in the dtype of x, or f32 if the bias has another dtype."}},
      .attributes = {featuresAttribute("size", "Elements of the bias, H."), dtypeAttribute(),
                     booleanAttribute(
                         "tensor_parallel", false,
                         "Shard the bias over ranks, as after a column-parallel linear layer. No effect on one rank.")},
      .inferOnRanks = infer,
      .flops = flops,
      .forwardCompute = forward,
      .saveContext = saveNothing,
      .backwardCompute = backward,
      .elementwise = {.forward = defineForward, .backward = defineBackward},
  });
}

}  // namespace fuseline::ops
