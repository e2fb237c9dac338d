// Looks up the names of a list.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/recipe_list.h"

#include <sstream>
#include <string>

namespace fuseline {

namespace {

constexpr std::string_view kEveryRecipe = "all";

}  // namespace

Result<std::vector<const RecipeDefinition*>> recipesNamed(std::string_view list) {
  std::vector<const RecipeDefinition*> recipes;
  if (list == kEveryRecipe) {
    for (const RecipeDefinition& recipe : builtinRecipes())
      if (!recipe.isCustom) recipes.push_back(&recipe);
    return recipes;
  }
  std::istringstream names{std::string(list)};
  for (std::string name; std::getline(names, name, ',');) {
    const Result<const RecipeDefinition*> recipe = recipeNamed(name);
    if (!recipe) return recipe.error();
    recipes.push_back(*recipe);
  }
  return recipes;
}

bool namesSeveralRecipes(std::string_view text) {
  return text == kEveryRecipe || text.find(',') != std::string_view::npos;
}

}  // namespace fuseline
