// Gated unit with halves that approach their limits smoothly.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/activation_gates.h"

namespace fuseline::ops {

BasicOperation situglu() {
  return gatedActivation({
      .name = "SiTUGLU",
      .summary = "Gated sigmoid-tanh unit: a SwiGLU whose two halves are limited smoothly.",
      .formula = "y = beta1 tanh(a / beta1) sigmoid(a) beta2 tanh(b / beta2), a and b the halves of x",
      .derivative =
          "da = dy up(b) ((1 - t^2) s + beta1 t s (1 - s)); db = dy gate(a) (1 - tanh(b / beta2)^2), t = tanh(a / "
          "beta1), s = sigmoid(a), gate and up the factors of a and of b",
      .source = "TransformerEngine te.ops.SiTUGLU (#3402)",
      .keywords = {"activation", "glu", "gated", "tanh", "sigmoid", "bounded"},
      .attributes = gates::joined(gates::situAttributes(), {interleaveAttribute()}),
      .check = gates::situCheck("SiTUGLU"),
      .functions = gates::situ,
  });
}

}  // namespace fuseline::ops
