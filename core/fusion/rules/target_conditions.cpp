// Conditions on the target of fusing.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rules/target_conditions.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline::rules {

namespace {

std::string recipeText(const FusionTarget& target) {
  return target.recipe ? target.recipe->name() : builtinRecipes().front().name;
}

Repair useRecipe(const std::string& name) { return {.label = "Use " + name, .edit = SetRecipe{{{"name", name}}}}; }

Condition recipeIs(std::vector<std::string> names, bool orNone) {
  const std::string list = fmt::format("{}", fmt::join(names, " or "));
  return {.sentence = fmt::format("The recipe is {}{}.", list, orNone ? " or none" : ""),
          .holds =
              [names, list, orNone](const Match& match) {
                const std::string own = recipeText(match.target);
                const bool isNone = own == builtinRecipes().front().name;
                if ((isNone && orNone) || std::ranges::count(names, own) > 0) return Verdict::yes();
                return Verdict::no(fmt::format("The recipe is {}, but {} needs {}.", own, match.rule.name, list));
              },
          .repairs = [name = names.front()](const Match&) { return std::vector{useRecipe(name)}; }};
}

/// The same recipe with another value of a field.
Repair setField(const Recipe& recipe, const std::string& field, const AttributeValue& value) {
  Attributes fields = recipe.fields();
  fields.set(field, value);
  const Result<Recipe> changed = Recipe::create(recipe.definition(), fields, recipe.overrides());
  return {.label = fmt::format("Set {} of the recipe to {}", field, toString(value)),
          .edit = SetRecipe{toJson(changed ? *changed : recipe)}};
}

}  // namespace

Condition severalRanks(std::string what) {
  return {.sentence = "There is more than one rank.", .holds = [what = std::move(what)](const Match& match) {
            if (match.target.ranks > 1) return Verdict::yes();
            return Verdict::no(fmt::format(
                "The group has {} rank, so {} has no communication to {}. Use `fuse --ranks N` to plan for more ranks.",
                match.target.ranks, match.node(0).id, what));
          }};
}

Condition recipeIsOneOf(std::vector<std::string> names) { return recipeIs(std::move(names), false); }

Condition recipeIsNoneOrOneOf(std::vector<std::string> names) { return recipeIs(std::move(names), true); }

Condition recipeFieldIs(std::string field, AttributeValue value, std::string reason) {
  return {.sentence = fmt::format("{} is {}, if the recipe has this field.", field, toString(value)),
          .holds =
              [field, value, reason](const Match& match) {
                const std::optional<Recipe>& recipe = match.target.recipe;
                if (!recipe || !recipe->definition().field(field) || recipe->fields().get(field) == value)
                  return Verdict::yes();
                return Verdict::no(fmt::format("{} has {} {}; {}.", recipe->name(), field,
                                               toString(recipe->fields().get(field)), reason));
              },
          .repairs = [field,
                      value](const Match& match) { return std::vector{setField(*match.target.recipe, field, value)}; }};
}

}  // namespace fuseline::rules
