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
          "The kernel that produces the output gradient of a linear op also computes its amax, which saves one read of "
          "the gradient. An activation takes the amax of its float32 values, before they are rounded to the gradient's "
          "dtype, as in TransformerEngine; otherwise the bits are the same.",
      .chain = {quantizingByAmax("linear", TensorType::GradOutput), rowByRow("reader")},
      .conditions = {scalesNeedTheAmax("linear", TensorType::GradOutput), hasNoGroups("linear")},
      .becomes = "quantize",
      .handsOverAmaxOnly = true,
  };
}

}  // namespace fuseline::rules
