// Gated unit whose halves approach their limits smoothly.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/activation_functions.h"
#include "core/ops/shared_attributes.h"

namespace fuseline::ops {

namespace {

constexpr const char* kName = "SiTUGLU";

AttributeSpec beta(std::string name, double value, std::string help) {
  return {.name = std::move(name),
          .type = AttributeType::Real,
          .defaultValue = value,
          .minimum = 0.0,
          .help = std::move(help)};
}

std::optional<Error> check(const Attributes& attributes) {
  if (auto error = checkPositive(kName, "beta1", attributes)) return error;
  return checkPositive(kName, "beta2", attributes);
}

GateFunctions functionsOf(const Attributes& attributes) {
  return {.activated = functions::situGate(attributes.real("beta1")),
          .linear = functions::softLimit(attributes.real("beta2"))};
}

}  // namespace

BasicOperation situglu() {
  return gatedActivation({
      .name = kName,
      .summary = "Gated sigmoid-tanh unit: a SwiGLU whose two halves are limited smoothly.",
      .formula = "y = beta1 tanh(a / beta1) sigmoid(a) beta2 tanh(b / beta2), a and b the halves of x",
      .derivative =
          "da = dy up(b) ((1 - t^2) s + beta1 t s (1 - s)); db = dy gate(a) (1 - tanh(b / beta2)^2), t = tanh(a / "
          "beta1), s = sigmoid(a), gate and up the factors of a and of b",
      .source = "TransformerEngine te.ops.SiTUGLU (#3402)",
      .keywords = {"activation", "glu", "gated", "tanh", "sigmoid", "bounded"},
      .attributes = {beta("beta1", 4.0, "Limit of the first half, finite and more than 0."),
                     beta("beta2", 25.0, "Limit of the second half, finite and more than 0.")},
      .check = check,
      .functions = functionsOf,
  });
}

}  // namespace fuseline::ops
