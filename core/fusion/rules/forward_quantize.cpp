// The op that makes a tensor quantizes it for the linear op that reads it.
// Source: next_op_input_quantizer in TransformerEngine's fuser.py.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

namespace fuseline::rules {

FusionRule forward_quantize() {
  return {
      .name = "ForwardQuantize",
      .pass = FusionPass::ForwardQuantization,
      .origin = RuleOrigin::Te,
      .summary =
          "Saves a read and, without other consumers, a write of a linear op's input: the kernel that produces it "
          "writes it quantized. Under DelayedScaling norms, activations and linear ops quantize their float32 "
          "values, before rounding to the tensor's dtype, as in TransformerEngine: 2 to 3 % of the quantized values "
          "differ by one quantization step. Otherwise results are bitwise identical.",
      .chain = {rowByRowOrLinear("producer", "row"), quantizing("linear", TensorType::Input)},
      .conditions = {scalesNeedOnlyRows("linear", TensorType::Input), hasNoGroups("linear"),
                     productsKnowTheScale("producer", "linear", TensorType::Input)},
      .becomes = "quantize",
  };
}

}  // namespace fuseline::rules
