// The op that produces the gradient read by a linear op also finds the amax with which the linear op quantizes it.
// Source: TransformerEngine's activations under Float8CurrentScaling (FUSED_DACT_AMAX_FP8 in its extensions).
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

namespace fuseline::rules {

FusionRule backward_amax() {
  return {
      .name = "BackwardAmax",
      .pass = FusionPass::BackwardHandOver,
      .origin = RuleOrigin::Te,
      .summary =
          "The kernel that makes the output gradient of a linear op also finds its largest value: nobody reads the "
          "gradient once more to find it before it can be "
          "quantized. An activation's is that of the float32 numbers, before they are rounded to the gradient's dtype, "
          "as in TransformerEngine; else the bits are the same.",
      .chain = {quantizingByAmax("linear", TensorType::GradOutput), rowByRow("reader")},
      .conditions = {scalesNeedTheAmax("linear", TensorType::GradOutput), hasNoGroups("linear")},
      .becomes = "quantize",
      .handsOverAmaxOnly = true,
  };
}

}  // namespace fuseline::rules
