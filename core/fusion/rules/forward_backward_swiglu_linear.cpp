// SwiGLU and the linear after it: the SwiGLU output is not kept but made again during backward.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

namespace fuseline::rules {

FusionRule forward_backward_swiglu_linear() {
  return {
      .name = "ForwardBackwardSwiGLULinear",
      .pass = FusionPass::Joint,
      .origin = RuleOrigin::Fuseline,
      .summary =
          "Only SwiGLU's input is kept for backward. There, one pass computes its gradient and recomputes its output "
          "for wgrad.",
      .chain = {{.role = "act", .operations = {"SwiGLU"}},
                {.role = "linear", .operations = {"BasicLinear"}},
                {.role = "add", .operations = {"AddExtraInput"}, .repeat = Repeat::Optional}},
      .conditions = {linearModeIsNot("linear", "row"), linearModeIsNot("linear", "column"), keepsItsInput("act"),
                     readsItsInputAsMade("linear")},
      .becomes = "swiglu_linear",
      .saves = [](const Match&) -> std::vector<MemberTensor> {
        return {{0, {OperandKind::Input, 0}}, {1, {OperandKind::Parameter, 0}}};
      },
      .price = "Backward recomputes SwiGLU's output, which takes one more pass.",
  };
}

}  // namespace fuseline::rules
