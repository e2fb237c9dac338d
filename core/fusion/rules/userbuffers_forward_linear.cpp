// A linear's communication during its GEMM (TransformerEngine userbuffers_forward_linear.py).
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/userbuffers.h"

namespace fuseline::rules {

FusionRule userbuffers_forward_linear() {
  return userbuffersLinear({
      .name = "UserbuffersForwardLinear",
      .pass = FusionPass::Forward,
      .summary = "Communication overlaps the GEMM, tile by tile: a column-parallel linear gathers x; a row-parallel "
                 "linear, and one before a ReduceScatter, scatter y. The GEMM adds the bias.",
  });
}

}  // namespace fuseline::rules
