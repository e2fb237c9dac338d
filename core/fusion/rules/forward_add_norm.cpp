// The residual added and the sum normalized in one pass over the rows.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

namespace fuseline::rules {

FusionRule forward_add_norm() {
  return {
      .name = "ForwardAddNorm",
      .pass = FusionPass::Forward,
      .origin = RuleOrigin::Fuseline,
      .summary = "One pass adds the residual and normalizes each row while it is in the cache.",
      .chain = {{.role = "add", .operations = {"AddExtraInput"}},
                {.role = "save", .operations = {"MakeExtraOutput"}, .repeat = Repeat::Optional},
                {.role = "norm", .operations = {"RMSNorm", "LayerNorm"}}},
      .conditions = {sameDType("add", "norm")},
      .becomes = "add_norm",
      .writesBranches = true,
  };
}

}  // namespace fuseline::rules
