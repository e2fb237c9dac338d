// A linear, its bias and the elementwise ops behind it in one step; in training what backward needs is written too.
//
// Where one of TransformerEngine's own forward fusions of a linear takes the whole run, it is left to them. It often
// takes a residual away from ForwardAddNorm: that one saves reading the sum, this one writing and reading the product.
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
