// The gradients of a linear and of its bias in one step.
//
// Rules that fuse the bias with its downstream ops often save the same. They come first: they save a pass that writes
// memory, this one a pass that only reads.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/conditions.h"

namespace fuseline::rules {

FusionRule backward_linear_bias() {
  return {
      .name = "BackwardLinearBias",
      .pass = FusionPass::Backward,
      .origin = RuleOrigin::Fuseline,
      .summary =
          "The bias gradient (the column sums of the output gradient) is summed where a GEMM reads the same rows: on "
          "the CPU directly before dgrad, on a GPU inside wgrad.",
      .chain = {{.role = "linear", .operations = {"BasicLinear"}}, {.role = "bias", .operations = {"Bias"}}},
      .conditions = {linearModeIsNot("linear", "row"), linearModeIsNot("linear", "column")},
      .becomes = "linear_backward_bias",
  };
}

}  // namespace fuseline::rules
