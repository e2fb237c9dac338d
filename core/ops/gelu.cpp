// Gaussian error linear unit, by the error function or in its tanh form.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/activation_functions.h"
#include "core/ops/shared_attributes.h"

namespace fuseline::ops {

BasicOperation gelu() {
  return unaryActivation({
      .name = "GELU",
      .summary =
          "Gaussian error linear unit: the tanh approximation, as in TransformerEngine, or the exact form with erf "
          "(approximate none), which te.ops does not have. -inf gives its limit, 0, where TransformerEngine gives NaN.",
      .formula = "y = x (0.5 + 0.5 tanh(x (0.79788456 + 0.03567741 x^2))), or x (0.5 + 0.5 erf(x / sqrt(2))) with "
                 "approximate none",
      .derivative =
          "dx = dy (0.5 x (1 - t^2) (0.79788456 + 0.1070322243 x^2) + 0.5 (1 + t)), t the tanh of the formula; with "
          "approximate none dx = dy (0.5 + 0.5 erf(x / sqrt(2)) + x exp(-x^2 / 2) / sqrt(2 pi))",
      .source = "Hendrycks & Gimpel 2016, arXiv:1606.08415; 0.79788456 = sqrt(2/pi)",
      .keywords = {"activation", "gaussian", "nonlinearity", "relu", "erf"},
      .function = functions::geluOf,
      .attributes = {approximateAttribute()},
  });
}

}  // namespace fuseline::ops
