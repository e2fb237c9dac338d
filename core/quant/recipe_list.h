// Several recipes by their names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/recipe.h"
#include "core/support/result.h"

#include <string_view>
#include <vector>

namespace fuseline {

/// The recipes in "none,delayed,mxfp8", or in "all": those with a single scaling. Errors (Usage): those of
/// recipeNamed().
Result<std::vector<const RecipeDefinition*>> recipesNamed(std::string_view list);

/// Is it more than the name of one?
bool namesSeveralRecipes(std::string_view text);

}  // namespace fuseline
