// Squared rectified linear unit with a scale for each row.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/activation_functions.h"

namespace fuseline::ops {

BasicOperation scaled_srelu() {
  return scaledUnaryActivation({
      .name = "ScaledSReLU",
      .summary =
          "Squared ReLU with a scale for each row, such as a router's probability. Scales are not rounded to the "
          "dtype of x.",
      .formula = "y = scales max(x, 0)^2",
      .derivative = "dx = dy scales max(2 x, 0); dscales = dy max(x, 0)^2 summed over each row",
      .source = "TransformerEngine te.ops.ScaledSReLU; So et al. 2021, Primer, arXiv:2109.08668",
      .keywords = {"activation", "squared relu", "relu2", "mixture of experts", "moe", "router", "probability"},
      .function = always(functions::squaredRelu()),
      .attributes = {recomputeAttribute()},
  });
}

}  // namespace fuseline::ops
