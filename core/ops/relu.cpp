// Rectified linear unit.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/activation_functions.h"

namespace fuseline::ops {

BasicOperation relu() {
  return unaryActivation({
      .name = "ReLU",
      .summary = "Rectified linear unit: negative values become 0. NaN stays NaN, where TransformerEngine gives 0.",
      .formula = "y = max(x, 0)",
      .derivative = "dx = dy where x > 0, else 0",
      .source = "Nair & Hinton 2010, Rectified linear units improve restricted Boltzmann machines",
      .keywords = {"activation", "rectifier", "nonlinearity", "max"},
      .function = always(functions::relu()),
  });
}

}  // namespace fuseline::ops
