// Gated SiLU with both halves clamped, as in GPT-OSS.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/activation_gates.h"

namespace fuseline::ops {

BasicOperation clamped_swiglu() {
  return gatedActivation({
      .name = "ClampedSwiGLU",
      .summary = "Gated SiLU with clamped halves, as in GPT-OSS. NaN stays NaN, where TransformerEngine gives a bound.",
      .formula = "y = c sigmoid(alpha c) (clamp(b, -limit, limit) + glu_linear_offset), c = min(a, limit), a and b the "
                 "halves of x",
      .derivative =
          "da = dy lin (s + alpha c s (1 - s)) where a <= limit, else 0, s = sigmoid(alpha c), lin the second factor; "
          "db = dy c s where -limit <= b <= limit, else 0",
      .source = "OpenAI 2025, gpt-oss model card, arXiv:2508.10925; TransformerEngine te.ops.ClampedSwiGLU",
      .keywords = {"activation", "glu", "gated", "swish", "silu", "clamp", "gpt-oss"},
      .attributes = gates::joined(gates::clampedAttributes(), {interleaveAttribute()}),
      .check = gates::clampedCheck("ClampedSwiGLU"),
      .functions = gates::clamped,
  });
}

}  // namespace fuseline::ops
