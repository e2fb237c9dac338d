// Offers symbols and recipes.
// SPDX-License-Identifier: Apache-2.0
#include "ui/sweep/sweep_choice.h"

#include "core/quant/recipe.h"
#include "ui/inspector/recipe_support.h"
#include "ui/theme/format.h"
#include "ui/widgets/translated.h"

#include <algorithm>
#include <optional>

namespace fuseline::ui {

namespace {

/// Nothing where the document names none that exists, or with fields that it does not have.
std::optional<Recipe> ownRecipe(const PipelineDocument& document) {
  const Json& json = document.recipe();
  Result<Recipe> own = json.is_null() ? Recipe::create(builtinRecipes().front()) : recipeFromJson(json);
  return own ? std::optional(std::move(*own)) : std::nullopt;
}

bool isOf(const std::optional<Recipe>& own, const RecipeDefinition& definition) {
  return own && *own == *Recipe::create(definition);
}

bool isOneOfAll(const std::optional<Recipe>& own) {
  return std::ranges::any_of(builtinRecipes(), [&](const RecipeDefinition& each) { return isOf(own, each); });
}

SweepRecipe builtin(const RecipeDefinition& definition, const std::optional<Recipe>& own, const RunTarget& target) {
  const bool isOwn = isOf(own, definition);
  const QString name = sweepRecipeName(definition.name);
  return {.key = isOwn ? QString() : toQt(definition.name),
          .label = isOwn ? translated("%1 (the pipeline's)").arg(name) : name,
          .whyNot = whyNotOn(target, *Recipe::create(definition))};
}

SweepRecipe custom(const std::optional<Recipe>& own, const RunTarget& target) {
  if (!own)
    return {.key = {},
            .label = translated("The pipeline's"),
            .whyNot = translated("The pipeline's recipe has an error. See Problems.")};
  return {.key = {},
          .label = translated("%1 (as set in this pipeline)").arg(toQt(own->name())),
          .whyNot = whyNotOn(target, *own)};
}

}  // namespace

std::vector<SweepSymbol> sweepSymbols(const PipelineDocument& document) {
  std::vector<SweepSymbol> symbols;
  for (const auto& [name, value] : document.symbols().items()) {
    const std::int64_t size = value.is_number_integer() ? value.get<std::int64_t>() : 0;
    symbols.push_back({.name = toQt(name), .sizes = size > 0 ? toQt(sizesText(sizesAround(size))) : QString()});
  }
  std::ranges::stable_partition(symbols, [](const SweepSymbol& symbol) { return !symbol.sizes.isEmpty(); });
  return symbols;
}

/// None first, so that others are set beside it.
std::vector<SweepRecipe> sweepRecipes(const PipelineDocument& document, const RunTarget& target) {
  const std::optional<Recipe> own = ownRecipe(document);
  std::vector<SweepRecipe> recipes;
  for (const RecipeDefinition& definition : builtinRecipes()) recipes.push_back(builtin(definition, own, target));
  if (!isOneOfAll(own)) recipes.insert(recipes.begin() + 1, custom(own, target));
  return recipes;
}

std::vector<std::string> recipeAxis(const std::vector<SweepRecipe>& offered, const QStringList& chosen,
                                    const PipelineDocument& document) {
  if (chosen == QStringList(QString())) return {};
  const std::optional<Recipe> own = ownRecipe(document);
  const std::string ownName = isOneOfAll(own) ? own->name() : std::string();
  std::vector<std::string> axis;
  for (const SweepRecipe& recipe : offered)
    if (recipe.whyNot.isEmpty() && chosen.contains(recipe.key))
      axis.push_back(recipe.key.isEmpty() ? ownName : recipe.key.toStdString());
  return axis;
}

QString sweepRecipeName(const std::string& recipe) {
  if (recipe.empty()) return translated("The pipeline's");
  return recipe == builtinRecipes().front().name ? translated("No quantization") : toQt(recipe);
}

}  // namespace fuseline::ui
