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
          "The kernel that produces the input of a linear op also computes its amax, which saves one read of the "
          "tensor. An activation takes the amax of its float32 values, before they are rounded to the tensor's dtype, "
          "as in TransformerEngine; otherwise the bits are the same.",
      .chain = {rowByRow("producer"), quantizingByAmax("linear", TensorType::Input)},
      .conditions = {scalesNeedTheAmax("linear", TensorType::Input), hasNoGroups("linear")},
      .becomes = "quantize",
      .handsOverAmaxOnly = true,
  };
}

}  // namespace fuseline::rules
