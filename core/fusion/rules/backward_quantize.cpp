// The op that produces the gradient read by a linear op also quantizes it for that op.
// Source: prev_op_grad_output_quantizer in TransformerEngine's fuser.py.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

namespace fuseline::rules {

FusionRule backward_quantize() {
  return {
      .name = "BackwardQuantize",
      .pass = FusionPass::BackwardHandOver,
      .origin = RuleOrigin::Te,
      .summary =
          "The kernel that makes the output gradient of a linear op also writes its quantized copies: nobody reads the "
          "gradient again to quantize it, and it is never written itself. "
          "Under DelayedScaling activations quantize the float32 numbers, before they are rounded to the gradient's "
          "dtype, as TransformerEngine's do: two or three codes of a hundred are the next one. Else the bits are the "
          "same.",
      .chain = {quantizing("linear", TensorType::GradOutput), rowByRow("reader")},
      .conditions = {scalesNeedOnlyRows("linear", TensorType::GradOutput), hasNoGroups("linear")},
      .becomes = "quantize",
  };
}

}  // namespace fuseline::rules
