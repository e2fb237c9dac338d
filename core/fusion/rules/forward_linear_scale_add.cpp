// Linear, a constant factor and the residual added in place, in one GEMM (TransformerEngine forward_linear_scale_add).
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

namespace fuseline::rules {

FusionRule forward_linear_scale_add() {
  return {
      .name = "ForwardLinearScaleAdd",
      .pass = FusionPass::Forward,
      .origin = RuleOrigin::Te,
      .summary =
          "The GEMM scales its float32 accumulator, adds the extra tensor and rounds once. If the extra tensor has "
          "another dtype than the GEMM, TransformerEngine fuses and then raises; Fuseline tries the next rule.",
      .chain = {{.role = "linear", .operations = {"BasicLinear"}},
                {.role = "scale", .operations = {"ConstantScale"}},
                {.role = "add", .operations = {"AddExtraInput"}}},
      .conditions = {linearModeIsNot("linear", "row"), inPlaceIs("add", true), sameDType("add", "linear")},
      .becomes = "linear_epilogue",
  };
}

}  // namespace fuseline::rules
