// RMSNorm's input gradient plus the branch's gradient (TransformerEngine backward_add_rmsnorm.py).
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

namespace fuseline::rules {

FusionRule backward_add_rmsnorm() {
  return {
      .name = "BackwardAddRMSNorm",
      .pass = FusionPass::Backward,
      .origin = RuleOrigin::Te,
      .summary = "The norm's backward adds the gradient of the residual branch, with a single rounding.",
      .chain = {{.role = "save", .operations = {"MakeExtraOutput"}}, {.role = "norm", .operations = {"RMSNorm"}}},
      .conditions = {inPlaceIs("save", false)},
      .becomes = "norm_backward_add",
  };
}

}  // namespace fuseline::rules
