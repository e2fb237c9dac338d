// Gated GELU.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/activation_functions.h"
#include "core/ops/shared_attributes.h"

namespace fuseline::ops {

BasicOperation geglu() {
  return gatedActivation({
      .name = "GEGLU",
      .summary = "Gated GELU: the first half of each row is activated and multiplied by the second half.",
      .formula = "y = gelu(a) b, a and b the halves of x, gelu in the form that approximate names",
      .derivative = "da = gelu'(a) dy b; db = gelu(a) dy, gelu' as for GELU",
      .source = "Shazeer 2020, arXiv:2002.05202",
      .keywords = {"activation", "glu", "gated", "gaussian"},
      .attributes = {approximateAttribute()},
      .functions =
          [](const Attributes& attributes) { return GateFunctions{.activated = functions::geluOf(attributes)}; },
  });
}

}  // namespace fuseline::ops
