// Gated SiLU with a scale for each row.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/activation_functions.h"

namespace fuseline::ops {

BasicOperation scaled_swiglu() {
  return scaledGatedActivation({
      .name = "ScaledSwiGLU",
      .summary =
          "SwiGLU with a scale for each row, such as a router's probability. Scales are not rounded to the dtype of x.",
      .formula = "y = scales silu(a) b, a and b the halves of x",
      .derivative = "da = dy scales silu'(a) b; db = dy scales silu(a); dscales = dy silu(a) b summed over each row",
      .source = "TransformerEngine te.ops.ScaledSwiGLU; Shazeer 2020, arXiv:2002.05202",
      .keywords = {"activation", "glu", "gated", "swish", "silu", "mixture of experts", "moe", "router", "probability"},
      .attributes = {interleaveAttribute("A multiple of 32."), noRecomputeAttribute()},
      .functions = activatedBy(functions::silu()),
  });
}

}  // namespace fuseline::ops
