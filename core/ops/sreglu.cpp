// Gated squared ReLU.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/activation_functions.h"

namespace fuseline::ops {

BasicOperation sreglu() {
  return gatedActivation({
      .name = "SReGLU",
      .summary = "Gated squared ReLU: the first half of each row is rectified, squared and multiplied by the second "
                 "half. NaN stays NaN, where TransformerEngine gives 0.",
      .formula = "y = max(a, 0)^2 b, a and b the halves of x",
      .derivative = "da = max(2 a, 0) dy b; db = max(a, 0)^2 dy",
      .source = "Shazeer 2020, arXiv:2002.05202 with the squared ReLU of arXiv:2109.08668",
      .keywords = {"activation", "glu", "gated", "squared relu", "relu2"},
      .functions = activatedBy(functions::squaredRelu()),
  });
}

}  // namespace fuseline::ops
