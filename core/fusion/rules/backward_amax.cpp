// The op that produces the gradient read by a linear op also finds the amax with which the linear op quantizes it.
// Source: TransformerEngine's activations under Float8CurrentScaling (FUSED_DACT_AMAX_FP8 in its extensions).
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

namespace fuseline::rules {

FusionRule backward_amax() {
  return {
      .name = "BackwardAmax",
      .pass = FusionPass::BackwardQuantization,
      .origin = RuleOrigin::Te,
      .summary =
          "Saves one read of a linear op's output gradient: the kernel that produces it also computes its amax. As in "
          "TransformerEngine, activations use their float32 values, before rounding to the gradient's dtype; otherwise "
          "results are bitwise identical.",
      .chain = {quantizingByAmax("linear", TensorType::GradOutput), rowByRow("reader")},
      .conditions = {scalesNeedTheAmax("linear", TensorType::GradOutput), hasNoGroups("linear")},
      .becomes = "quantize",
      .findsAmaxOnly = true,
  };
}

}  // namespace fuseline::rules
