// The op that makes a tensor quantizes it for the linear op that reads it.
// Source: next_op_input_quantizer in TransformerEngine's fuser.py.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

namespace fuseline::rules {

FusionRule forward_quantize() {
  return {
      .name = "ForwardQuantize",
      .pass = FusionPass::ForwardHandOver,
      .origin = RuleOrigin::Te,
      .summary =
          "The kernel that makes the input of a linear op also writes its quantized copies: nobody reads the tensor "
          "again to quantize it, and where nobody else wants it, it is never written. "
          "Under DelayedScaling norms and activations quantize the float32 numbers, before they are rounded to the "
          "tensor's dtype, as TransformerEngine's do: two or three codes of a hundred are the next one. Else the bits "
          "are the same.",
      .chain = {rowByRow("producer"), quantizing("linear", TensorType::Input)},
      .conditions = {scalesNeedOnlyRows("linear", TensorType::Input), hasNoGroups("linear")},
      .becomes = "quantize",
  };
}

}  // namespace fuseline::rules
