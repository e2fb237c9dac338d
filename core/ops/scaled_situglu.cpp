// SiTUGLU with a scale for each row.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/activation_gates.h"

namespace fuseline::ops {

BasicOperation scaled_situglu() {
  return scaledGatedActivation({
      .name = "ScaledSiTUGLU",
      .summary = "SiTUGLU with a scale for each row, such as a router's probability. Scales are not rounded to the "
                 "dtype of x.",
      .formula = "y = scales beta1 tanh(a / beta1) sigmoid(a) beta2 tanh(b / beta2), a and b the halves of x",
      .derivative = "da = dy scales gate'(a) up(b); db = dy scales gate(a) up'(b); dscales = dy gate(a) up(b) summed "
                    "over each row, gate and up the factors of a and of b",
      .source = "TransformerEngine te.ops.ScaledSiTUGLU",
      .keywords = {"activation", "glu", "gated", "tanh", "sigmoid", "bounded", "mixture of experts", "moe", "router",
                   "probability"},
      .attributes =
          gates::joined(gates::situAttributes(), {interleaveAttribute("A multiple of 32."), noRecomputeAttribute()}),
      .check = gates::situCheck("ScaledSiTUGLU"),
      .functions = gates::situ,
  });
}

}  // namespace fuseline::ops
