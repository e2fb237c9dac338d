// Gated SiLU: the first half of the last axis is activated and multiplied by the second half.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/activation_functions.h"

namespace fuseline::ops {

BasicOperation swiglu() {
  return gatedActivation({
      .name = "SwiGLU",
      .summary = "Gated SiLU: the first half of each row is activated and multiplied by the second half.",
      .formula = "y = silu(a) b, a and b the halves of x, silu(a) = a sigmoid(a)",
      .derivative = "da = silu'(a) dy b; db = silu(a) dy, silu'(a) = a s (1 - s) + s, s = sigmoid(a)",
      .source = "Shazeer 2020, arXiv:2002.05202",
      .keywords = {"activation", "glu", "gated", "swish", "silu", "llama"},
      .attributes = {interleaveAttribute()},
      .functions = activatedBy(functions::silu()),
  });
}

}  // namespace fuseline::ops
