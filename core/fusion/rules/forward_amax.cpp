// The op that makes a tensor finds the amax by which the linear op that reads it quantizes it.
// Source: TransformerEngine's norms and activations under Float8CurrentScaling (FUSED_NORM_AMAX_FP8 and
// FUSED_ACTIVATION_AMAX_FP8 in its extensions).
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

namespace fuseline::rules {

FusionRule forward_amax() {
  return {
      .name = "ForwardAmax",
      .pass = FusionPass::ForwardHandOver,
      .origin = RuleOrigin::Te,
      .summary =
          "The kernel that makes the input of a linear op also finds its largest value: nobody reads the tensor once "
          "more to find it before it can be quantized. An "
          "activation's is that of the float32 numbers, before they are rounded to the tensor's dtype, as in "
          "TransformerEngine; else the bits are the same.",
      .chain = {rowByRow("producer"), quantizingByAmax("linear", TensorType::Input)},
      .conditions = {scalesNeedTheAmax("linear", TensorType::Input), hasNoGroups("linear")},
      .becomes = "quantize",
      .handsOverAmaxOnly = true,
  };
}

}  // namespace fuseline::rules
