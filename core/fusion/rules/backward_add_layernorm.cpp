// LayerNorm's input gradient plus the branch's gradient; TransformerEngine has it for RMSNorm only.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

namespace fuseline::rules {

FusionRule backward_add_layernorm() {
  return {
      .name = "BackwardAddLayerNorm",
      .pass = FusionPass::Backward,
      .origin = RuleOrigin::Fuseline,
      .summary = "The norm's backward adds the gradient of the residual branch, with a single rounding.",
      .chain = {{.role = "save", .operations = {"MakeExtraOutput"}}, {.role = "norm", .operations = {"LayerNorm"}}},
      .conditions = {sameDType("save", "norm")},
      .becomes = "norm_backward_add",
  };
}

}  // namespace fuseline::rules
