// Linear, bias and the residual added in place, in one GEMM (TransformerEngine forward_linear_bias_add.py).
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

namespace fuseline::rules {

FusionRule forward_linear_bias_add() {
  return {
      .name = "ForwardLinearBiasAdd",
      .pass = FusionPass::Forward,
      .origin = RuleOrigin::Te,
      .summary =
          "The GEMM adds the bias and the extra tensor to its float32 accumulator and rounds once. If the extra tensor "
          "has another dtype than the GEMM, TransformerEngine fuses and then raises; Fuseline tries the next rule.",
      .chain = {{.role = "linear", .operations = {"BasicLinear"}},
                {.role = "bias", .operations = {"Bias"}, .repeat = Repeat::Optional},
                {.role = "add", .operations = {"AddExtraInput"}}},
      .conditions = {linearModeIsNot("linear", "row"), inPlaceIs("add", true), sameDType("add", "linear")},
      .becomes = "linear_epilogue",
  };
}

}  // namespace fuseline::rules
