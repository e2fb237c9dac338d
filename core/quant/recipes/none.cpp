// No quantization: every operand stays in the dtype of its tensor.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/recipe.h"

namespace fuseline::recipes {

RecipeDefinition none() {
  return {
      .name = "None",
      .summary = "No quantization: every GEMM uses the dtype of its tensors.",
      .source = "TransformerEngine without an autocast",
      .fields = {},
      .check = {},
      .quantizer = {},
  };
}

}  // namespace fuseline::recipes
