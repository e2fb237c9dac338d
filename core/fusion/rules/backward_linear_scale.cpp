// The gradients of a linear and of the downstream constant factor (TransformerEngine backward_linear_scale.py).
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

namespace fuseline::rules {

FusionRule backward_linear_scale() {
  return {
      .name = "BackwardLinearScale",
      .pass = FusionPass::Backward,
      .origin = RuleOrigin::Te,
      .summary = "Both gradient GEMMs scale their float32 accumulators, so the scaled gradient is never written.",
      .chain = {{.role = "linear", .operations = {"BasicLinear"}}, {.role = "scale", .operations = {"ConstantScale"}}},
      .conditions = {linearModeIsNot("linear", "column")},
      .becomes = "linear_backward_scale",
      .readsLastGradientInGemms = true,
  };
}

}  // namespace fuseline::rules
