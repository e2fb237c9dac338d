// Gated SiLU with both halves clamped, as in GPT-OSS.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/activation_functions.h"
#include "core/ops/shared_attributes.h"

namespace fuseline::ops {

namespace {

constexpr const char* kName = "ClampedSwiGLU";

AttributeSpec real(std::string name, double value, std::optional<double> minimum, std::string help) {
  return {.name = std::move(name),
          .type = AttributeType::Real,
          .defaultValue = value,
          .minimum = minimum,
          .help = std::move(help)};
}

std::optional<Error> check(const Attributes& attributes) {
  if (auto error = checkNotNegative(kName, "limit", attributes)) return error;
  if (auto error = checkFinite(kName, "alpha", attributes)) return error;
  return checkFinite(kName, "glu_linear_offset", attributes);
}

GateFunctions functionsOf(const Attributes& attributes) {
  const double limit = attributes.real("limit");
  return {.activated = functions::clampedSilu(limit, attributes.real("alpha")),
          .linear = functions::clampedLinear(limit, attributes.real("glu_linear_offset"))};
}

}  // namespace

BasicOperation clamped_swiglu() {
  return gatedActivation({
      .name = kName,
      .summary = "Gated SiLU with clamped halves, as in GPT-OSS. NaN stays NaN, where TransformerEngine gives a bound.",
      .formula = "y = c sigmoid(alpha c) (clamp(b, -limit, limit) + glu_linear_offset), c = min(a, limit), a and b the "
                 "halves of x",
      .derivative =
          "da = dy lin (s + alpha c s (1 - s)) where a <= limit, else 0, s = sigmoid(alpha c), lin the second factor; "
          "db = dy c s where -limit <= b <= limit, else 0",
      .source = "OpenAI 2025, gpt-oss model card, arXiv:2508.10925; TransformerEngine te.ops.ClampedSwiGLU",
      .keywords = {"activation", "glu", "gated", "swish", "silu", "clamp", "gpt-oss"},
      .attributes = {real("limit", 7.0, 0.0, "Upper bound of a, and bound of the magnitude of b."),
                     real("alpha", 1.702, std::nullopt, "Factor inside the sigmoid."),
                     real("glu_linear_offset", 1.0, std::nullopt, "Added to the clamped second half.")},
      .check = check,
      .functions = functionsOf,
  });
}

}  // namespace fuseline::ops
