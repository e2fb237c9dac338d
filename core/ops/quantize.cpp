// Marks where tensors change to a recipe's number format.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/view.h"

namespace fuseline::ops {

namespace {

Result<OperationSpecs> infer(const Attributes&, std::span<const TensorSpec> inputs) {
  return OperationSpecs{.outputs = {inputs[0]}};
}

AttributeSpec flag(const char* name, bool value, const char* help) {
  return {.name = name, .type = AttributeType::Boolean, .defaultValue = value, .help = help};
}

}  // namespace

BasicOperation quantize() {
  return viewOperation({
      .name = "Quantize",
      .category = "Structure",
      .summary =
          "Marks where a tensor is to be quantized. It passes its input on unchanged, also under a recipe: linear ops "
          "quantize what they read themselves.",
      .formula = "y = x",
      .derivative = "dx = dy",
      .source = "TransformerEngine te.ops.Quantize",
      .keywords = {"cast", "fp8", "mxfp8", "nvfp4", "recipe"},
      .note = [](const Attributes&) { return "the identity here"; },
      .inputs = {{"x", "[...]", "Any shape."}},
      .outputs = {{"y", "[...]", "x itself."}},
      .attributes = {flag("forward", true, "In TransformerEngine: quantizes x. Here it changes nothing."),
                     flag("backward", false,
                          "In TransformerEngine: quantizes the gradient dy. Here it changes nothing.")},
      .infer = infer,
  });
}

}  // namespace fuseline::ops
