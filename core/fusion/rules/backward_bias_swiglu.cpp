// SwiGLU's backward and the bias gradient before it, in one pass.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

namespace fuseline::rules {

FusionRule backward_bias_swiglu() {
  return {
      .name = "BackwardBiasSwiGLU",
      .pass = FusionPass::Backward,
      .origin = RuleOrigin::Fuseline,
      .summary = "One pass computes both halves of SwiGLU's gradient and the bias gradient (its column sums).",
      .chain = {{.role = "bias", .operations = {"Bias"}}, {.role = "act", .operations = {"SwiGLU"}}},
      .conditions = {keepsItsInput("act")},
      .becomes = "elementwise",
  };
}

}  // namespace fuseline::rules
