// Sigmoid linear unit.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/activation_functions.h"

namespace fuseline::ops {

BasicOperation silu() {
  return unaryActivation({
      .name = "SiLU",
      .summary = "Sigmoid linear unit, also called Swish. -inf gives its limit, 0, where TransformerEngine gives NaN.",
      .formula = "y = x sigmoid(x)",
      .derivative = "dx = dy (x s (1 - s) + s), s = sigmoid(x)",
      .source = "Elfwing et al. 2017, arXiv:1702.03118",
      .keywords = {"activation", "swish", "sigmoid", "nonlinearity"},
      .function = always(functions::silu()),
  });
}

}  // namespace fuseline::ops
