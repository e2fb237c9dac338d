// ClampedSwiGLU with a scale for each row.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/activation_gates.h"

namespace fuseline::ops {

BasicOperation scaled_clamped_qgeglu() {
  return scaledGatedActivation({
      .name = "ScaledClampedQGeGLU",
      .summary = "ClampedSwiGLU with a scale for each row, such as a router's probability. Scales are not rounded to "
                 "the dtype of x.",
      .formula = "y = scales c sigmoid(alpha c) (clamp(b, -limit, limit) + glu_linear_offset), c = min(a, limit), a "
                 "and b the halves of x",
      .derivative = "da, db: as ClampedSwiGLU, with dy * scales for dy; dscales = row sum of dy * unscaled y",
      .source = "TransformerEngine te.ops.ScaledClampedQGeGLU; OpenAI 2025, gpt-oss model card, arXiv:2508.10925",
      .keywords = {"activation", "glu", "gated", "quick gelu", "clamp", "gpt-oss", "mixture of experts", "moe",
                   "router", "probability"},
      .attributes =
          gates::joined(gates::clampedAttributes(), {interleaveAttribute("A multiple of 32."), noRecomputeAttribute()}),
      .check = gates::clampedCheck("ScaledClampedQGeGLU"),
      .functions = gates::clamped,
  });
}

}  // namespace fuseline::ops
