// Gated linear unit.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/activation_functions.h"

namespace fuseline::ops {

BasicOperation glu() {
  return gatedActivation({
      .name = "GLU",
      .summary = "Gated linear unit: the sigmoid of the first half of each row multiplies the second half.",
      .formula = "y = sigmoid(a) b, a and b the halves of x",
      .derivative = "da = s (1 - s) dy b; db = s dy, s = sigmoid(a)",
      .source = "Dauphin et al. 2016, arXiv:1612.08083",
      .keywords = {"activation", "gated", "sigmoid"},
      .functions = activatedBy(functions::sigmoid()),
  });
}

}  // namespace fuseline::ops
