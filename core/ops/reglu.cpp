// Gated ReLU.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/activation_functions.h"

namespace fuseline::ops {

BasicOperation reglu() {
  return gatedActivation({
      .name = "ReGLU",
      .summary = "Gated ReLU: the first half of each row is rectified and multiplied by the second half. NaN stays "
                 "NaN, where TransformerEngine gives 0.",
      .formula = "y = max(a, 0) b, a and b the halves of x",
      .derivative = "da = dy b where a > 0, else 0; db = max(a, 0) dy",
      .source = "Shazeer 2020, arXiv:2002.05202",
      .keywords = {"activation", "glu", "gated", "relu"},
      .functions = activatedBy(functions::relu()),
  });
}

}  // namespace fuseline::ops
