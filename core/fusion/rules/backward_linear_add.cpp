// The input gradient of a linear accumulated into the branch's gradient (TransformerEngine backward_linear_add.py).
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

namespace fuseline::rules {

FusionRule backward_linear_add() {
  return {
      .name = "BackwardLinearAdd",
      .pass = FusionPass::Backward,
      .origin = RuleOrigin::Te,
      .summary = "The dgrad GEMM adds the gradient of the residual branch, so no separate sum is needed.",
      .chain = {{.role = "save", .operations = {"MakeExtraOutput"}}, {.role = "linear", .operations = {"BasicLinear"}}},
      .conditions = {inPlaceIs("save", true), linearModeIsNot("linear", "column")},
      .becomes = "linear_backward_add",
  };
}

}  // namespace fuseline::rules
