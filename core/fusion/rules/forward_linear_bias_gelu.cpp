// Linear, bias and GELU in one GEMM; in training the pre-activation is written too.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

namespace fuseline::rules {

FusionRule forward_linear_bias_gelu() {
  return {
      .name = "ForwardLinearBiasGelu",
      .pass = FusionPass::Forward,
      .origin = RuleOrigin::Fuseline,
      .summary = "Bias and GELU are applied to the GEMM's float32 accumulator; training also keeps the pre-activation.",
      .chain = {{.role = "linear", .operations = {"BasicLinear"}},
                {.role = "bias", .operations = {"Bias"}},
                {.role = "act", .operations = {"GELU"}}},
      .conditions = {linearModeIsNot("linear", "row")},
      .becomes = "linear_epilogue",
  };
}

}  // namespace fuseline::rules
