// Suggests recipes if the pipeline has none and their gain on the planned GPU can be estimated.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/suggestions/sources.h"
#include "core/quant/small_layers.h"

#include <fmt/format.h>

namespace fuseline {

namespace {

bool isNone(const std::optional<Recipe>& recipe) { return !recipe || recipe->name() == builtinRecipes().front().name; }

}  // namespace

/// Delayed scaling needs steps before the first one that counts: it is left to people.
std::vector<Proposal> suggestion_sources::recipes(const SuggestionContext& context) {
  std::vector<Proposal> proposals;
  const bool canBeEstimated = context.options.capability == kEstimatedCapability;
  if (!isNone(context.analysis.recipe) || context.options.recipe || !canBeEstimated) return proposals;
  for (const RecipeDefinition& definition : builtinRecipes()) {
    const Result<Recipe> recipe = Recipe::create(definition);
    if (!recipe || isNone(*recipe) || definition.hasState || !supports(*recipe, *context.options.capability)) continue;
    if (!recipe->quantizerFor(operandRoles().front())) continue;
    proposals.push_back({.source = "recipes",
                         .kind = SuggestionKind::ChangesBehavior,
                         .repair = {"Use " + definition.name, SetRecipe{{{"name", definition.name}}}},
                         .caution = "Linear layers then use quantized operands: check the error in Numerics."});
  }
  return proposals;
}

}  // namespace fuseline
