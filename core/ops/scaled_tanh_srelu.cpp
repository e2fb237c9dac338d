// Squared rectified linear unit that approaches a limit smoothly, with a scale for each row.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/activation_functions.h"
#include "core/ops/shared_attributes.h"

namespace fuseline::ops {

namespace {

constexpr const char* kScaledTanhName = "ScaledTanhSReLU";
constexpr const char* kLimit = "tanh_clamp_scale";

}  // namespace

BasicOperation scaled_tanh_srelu() {
  return scaledUnaryActivation({
      .name = kScaledTanhName,
      .summary =
          "Squared ReLU that approaches the square of tanh_clamp_scale, with a scale for each row, such as a router's "
          "probability. Scales are not rounded to the dtype of x.",
      .formula = "y = scales (s tanh(max(x, 0) / s))^2, s = tanh_clamp_scale",
      .derivative =
          "dx = dy scales 2 s t (1 - t^2), t = tanh(max(x, 0) / s); dscales = dy (s t)^2 summed over each row",
      .source = "TransformerEngine te.ops.ScaledTanhSReLU",
      .keywords = {"activation", "squared relu", "relu2", "tanh", "bounded", "mixture of experts", "moe", "router",
                   "probability"},
      .function =
          [](const Attributes& attributes) { return functions::softClampedSquaredRelu(attributes.real(kLimit)); },
      .attributes = {{.name = kLimit,
                      .type = AttributeType::Real,
                      .minimum = 0.0,
                      .help = "Limit of the rectified x before it is squared, finite and more than 0."},
                     recomputeAttribute()},
      .check = [](const Attributes& attributes) { return checkPositive(kScaledTanhName, kLimit, attributes); },
  });
}

}  // namespace fuseline::ops
