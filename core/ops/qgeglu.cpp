// Gated Quick GELU.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/activation_functions.h"

namespace fuseline::ops {

BasicOperation qgeglu() {
  return gatedActivation({
      .name = "QGEGLU",
      .summary = "Gated Quick GELU: the first half of each row is activated and multiplied by the second half.",
      .formula = "y = qgelu(a) b, a and b the halves of x, qgelu(a) = a sigmoid(1.702 a)",
      .derivative = "da = qgelu'(a) dy b; db = qgelu(a) dy, qgelu'(a) = 1.702 a s (1 - s) + s, s = sigmoid(1.702 a)",
      .source = "Shazeer 2020, arXiv:2002.05202 with the GELU of arXiv:1606.08415, section 2",
      .keywords = {"activation", "glu", "gated", "quick gelu", "geglu"},
      .functions = activatedBy(functions::quickGelu()),
  });
}

}  // namespace fuseline::ops
