// Marks where tensors change to a recipe's number format.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/shared_attributes.h"
#include "core/ops/view.h"

namespace fuseline::ops {

namespace {
namespace quantize_parts {

Result<OperationSpecs> infer(const Attributes&, std::span<const TensorSpec> inputs) {
  return OperationSpecs{.outputs = {inputs[0]}};
}

constexpr const char* kDetails =
    "A linear op with the same quantizer for its input, or for the gradient of its output, consumes the "
    "quantized\ntensor. For all other ops a step dequantizes it, which costs a pass over memory that the plan shows.";

}  // namespace quantize_parts
}  // namespace

BasicOperation quantize() {
  using namespace quantize_parts;
  BasicOperation op = viewOperation({
      .name = "Quantize",
      .category = "Structure",
      .summary = "Under a recipe, quantizes a tensor or its gradient; without one, passes it on unchanged.",
      .formula = "y = x; under a recipe y = dequantize(quantize(x))",
      .derivative = "dx = dy; under a recipe with backward on dx = dequantize(quantize(dy))",
      .source = "TransformerEngine te.ops.Quantize",
      .details = kDetails,
      .keywords = {"cast", "fp8", "mxfp8", "nvfp4", "recipe"},
      .inputs = {{"x", "[...]", "Any shape; blocks of a recipe must fit."}},
      .outputs = {{"y", "[...]", "x, or its dequantized values."}},
      .attributes = {booleanAttribute("forward", true,
                                      "Quantizes x, as the recipe does with the input of a linear op."),
                     booleanAttribute("backward", false,
                                      "Quantizes dy, as the recipe does with the gradient of a linear op.")},
      .infer = infer,
  });
  op.isQuantizable = true;
  return op;
}

}  // namespace fuseline::ops
