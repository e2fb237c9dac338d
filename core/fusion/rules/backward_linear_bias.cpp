// The gradients of a linear and of its bias in one step.
//
// Rules that fuse the bias with its downstream ops often save the same. They come first: they save a pass that writes
// memory, this one a pass that only reads.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/collective_overlap.h"
#include "core/fusion/rules/conditions.h"

#include <fmt/format.h>

namespace fuseline::rules {

namespace {

/// A fused step would compute both gradients before it sends one.
Condition sendsNoInputGradient() {
  return {.sentence = "The linear's input gradient is not sent to other ranks.",
          .holds =
              [](const Match& match) {
                const Node& linear = *match.role("linear");
                if (!sendsInputGradient(match.graph, match.nodes.front())) return Verdict::yes();
                return Verdict::no(
                    fmt::format("The input gradient of {} is summed over the ranks while its weight gradient is "
                                "computed, so dgrad and wgrad are separate steps.",
                                linear.id));
              },
          .repairs = {}};
}

}  // namespace

FusionRule backward_linear_bias() {
  return {
      .name = "BackwardLinearBias",
      .pass = FusionPass::Backward,
      .origin = RuleOrigin::Fuseline,
      .summary =
          "The bias gradient (the column sums of the output gradient) is summed where a GEMM reads the same rows: on "
          "the CPU directly before dgrad, on a GPU inside wgrad.",
      .chain = {{.role = "linear", .operations = {"BasicLinear"}}, {.role = "bias", .operations = {"Bias"}}},
      .conditions = {linearModeIsNot("linear", "row"), linearModeIsNot("linear", "column"), sendsNoInputGradient()},
      .becomes = "linear_backward_bias",
  };
}

}  // namespace fuseline::rules
