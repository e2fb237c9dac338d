// Quick GELU: the sigmoid form of GELU.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/activation_functions.h"

namespace fuseline::ops {

BasicOperation qgelu() {
  return unaryActivation({
      .name = "QGELU",
      .summary = "Quick GELU: GELU approximated with a sigmoid. -inf gives its limit, 0, where TransformerEngine gives "
                 "NaN.",
      .formula = "y = x sigmoid(1.702 x)",
      .derivative = "dx = dy (1.702 x s (1 - s) + s), s = sigmoid(1.702 x)",
      .source = "Hendrycks & Gimpel 2016, arXiv:1606.08415, section 2",
      .keywords = {"activation", "quick gelu", "quickgelu", "sigmoid", "nonlinearity"},
      .function = always(functions::quickGelu()),
  });
}

}  // namespace fuseline::ops
