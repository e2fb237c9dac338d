// The op that makes a tensor finds the amax by which the linear op that reads it quantizes it.
// Source: TransformerEngine's norms and activations under Float8CurrentScaling (FUSED_NORM_AMAX_FP8 and
// FUSED_ACTIVATION_AMAX_FP8 in its extensions).
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

namespace fuseline::rules {

FusionRule forward_amax() {
  return {
      .name = "ForwardAmax",
      .pass = FusionPass::ForwardQuantization,
      .origin = RuleOrigin::Te,
      .summary =
          "Saves one read of a linear op's input: the kernel that produces it also computes its amax. As in "
          "TransformerEngine, activations use their float32 values, before rounding to the tensor's dtype; otherwise "
          "results are bitwise identical.",
      .chain = {rowByRow("producer"), quantizingByAmax("linear", TensorType::Input)},
      .conditions = {scalesNeedTheAmax("linear", TensorType::Input), hasNoGroups("linear")},
      .becomes = "quantize",
      .findsAmaxOnly = true,
  };
}

}  // namespace fuseline::rules
