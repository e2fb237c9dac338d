// Linear and bias in one GEMM (TransformerEngine forward_linear_bias_activation.py, which never fuses an activation).
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

namespace fuseline::rules {

FusionRule forward_linear_bias_activation() {
  return {
      .name = "ForwardLinearBiasActivation",
      .pass = FusionPass::Forward,
      .origin = RuleOrigin::Te,
      .summary =
          "The GEMM adds the bias to its float32 accumulator and rounds once. Despite its name, "
          "TransformerEngine's fusion never includes the activation.",
      .chain = {{.role = "linear", .operations = {"BasicLinear"}}, {.role = "bias", .operations = {"Bias"}}},
      .conditions = {linearModeIsNot("linear", "row"), weightIs16Bit("linear")},
      .becomes = "linear_epilogue",
  };
}

}  // namespace fuseline::rules
