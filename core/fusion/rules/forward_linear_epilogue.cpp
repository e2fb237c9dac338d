// A linear, its bias and the downstream elementwise ops in one step; in training tensors for backward are written too.
//
// If one of TransformerEngine's own forward fusions of a linear matches all of the ops, they are left to it. It often
// takes a residual away from ForwardAddNorm: that one saves reading the sum, this one writing and reading the GEMM's
// result.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/chains.h"
#include "core/fusion/rules/conditions.h"

namespace fuseline::rules {

FusionRule forward_linear_bias_add();
FusionRule forward_linear_scale_add();

FusionRule forward_linear_epilogue() {
  return {
      .name = "ForwardLinearEpilogue",
      .pass = FusionPass::Forward,
      .origin = RuleOrigin::Fuseline,
      .summary =
          "Bias, activation, dropout, scale and residual are applied to the GEMM's result while it is in the cache. "
          "Training also keeps the pre-activation.",
      .chain = linearEpilogueChain(),
      .conditions = {linearModeIsNot("linear", "row"), isNotTakenBy(forward_linear_bias_add()),
                     isNotTakenBy(forward_linear_scale_add())},
      .becomes = "linear_epilogue",
  };
}

}  // namespace fuseline::rules
