// A grouped MLP with an activation that is not gated (TransformerEngine grouped_mlp.py).
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/grouped_mlp.h"

namespace fuseline::rules {

FusionRule grouped_mlp_unary() {
  return groupedMlp({.name = "GroupedMLP_CuTeGEMMUnary"}, {"ScaledSReLU", "ScaledTanhSReLU"});
}

}  // namespace fuseline::rules
