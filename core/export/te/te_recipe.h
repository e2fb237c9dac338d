// Recipes as TransformerEngine's Python writes them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/recipe.h"

#include <optional>
#include <string>
#include <vector>

namespace fuseline {

struct TeRecipe {
  /// "RECIPE = recipe.MXFP8BlockScaling(...)" and statements that set what has no argument; "RECIPE = None".
  std::string text;
  std::vector<std::string> notes;
};

/// Fields have TransformerEngine's names. Those with TransformerEngine's default are left out, so that its environment
/// variables mean what they mean for every other recipe. Overrides have no counterpart there: a note says so.
TeRecipe teRecipe(const std::optional<Recipe>& recipe);

}  // namespace fuseline
