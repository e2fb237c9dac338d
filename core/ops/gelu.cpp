// Gaussian error linear unit in its tanh form.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/activation_functions.h"

namespace fuseline::ops {

BasicOperation gelu() {
  return unaryActivation({
      .name = "GELU",
      .summary =
          "Gaussian error linear unit in its tanh form, as TransformerEngine computes it. -inf gives its limit, 0, "
          "where TransformerEngine gives NaN.",
      .formula = "y = x (0.5 + 0.5 tanh(x (0.79788456 + 0.03567741 x^2)))",
      .derivative =
          "dx = dy (0.5 x (1 - t^2) (0.79788456 + 0.1070322243 x^2) + 0.5 (1 + t)), t the tanh of the formula",
      .source = "Hendrycks & Gimpel 2016, arXiv:1606.08415; 0.79788456 = sqrt(2/pi)",
      .keywords = {"activation", "gaussian", "nonlinearity", "relu"},
      .function = always(functions::gelu()),
  });
}

}  // namespace fuseline::ops
