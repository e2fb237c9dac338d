// Squared rectified linear unit.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/activation_functions.h"

namespace fuseline::ops {

BasicOperation srelu() {
  return unaryActivation({
      .name = "SReLU",
      .summary = "Squared ReLU: negative values become 0, the others are squared. NaN stays NaN, where "
                 "TransformerEngine gives 0.",
      .formula = "y = max(x, 0)^2",
      .derivative = "dx = dy max(2 x, 0)",
      .source = "So et al. 2021, Primer, arXiv:2109.08668",
      .keywords = {"activation", "squared relu", "relu2", "primer", "nonlinearity"},
      .function = always(functions::squaredRelu()),
  });
}

}  // namespace fuseline::ops
