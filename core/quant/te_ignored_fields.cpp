// Source: TransformerEngine 2.20.2, ops/basic/basic_linear.py (reset_recipe_state() sets amax_epsilon_scales, which
// nothing reads, and GEMMs take the constants _2X_ACC_*) and ops/basic/grouped_linear.py (no backward_override).
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/te_ignored_fields.h"

#include "core/quant/apply_recipe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

/// Fields with this prefix that do not have their default.
std::vector<std::string> changedFields(const Recipe& recipe, std::string_view prefix) {
  std::vector<std::string> changed;
  for (const AttributeSpec& field : recipe.definition().fields)
    if (field.name.starts_with(prefix) && recipe.fields().get(field.name) != field.defaultValue)
      changed.push_back(field.name);
  return changed;
}

}  // namespace

std::vector<std::string> ignoredByTeOps(const Recipe& recipe) {
  std::vector<std::string> sentences;
  const auto note = [&](std::string_view prefix, std::string_view whatHappens) {
    if (const std::vector<std::string> changed = changedFields(recipe, prefix); !changed.empty())
      sentences.push_back(fmt::format("The recipe sets {}. Fuseline applies it, but te.ops {}.",
                                      fmt::join(changed, ", "), whatHappens));
  };
  if (recipe.name() == "Float8CurrentScaling") note("amax_epsilon", "quantizes without an epsilon");
  note("split_accumulator", "always uses split accumulators for dgrad and wgrad, and never for fprop");
  return sentences;
}

std::string ignoredByTeOp(const Node& node, const Recipe& recipe) {
  const bool isOverridden =
      recipe.definition().field("backward_override") && recipe.fields().text("backward_override") != "none";
  if (!isOverridden || rowGroups(node) == 0) return {};
  return fmt::format(
      "{}: Fuseline applies backward_override {}, but te.ops.GroupedLinear ignores it and computes backward as the "
      "recipe says.",
      node.id, recipe.fields().text("backward_override"));
}

}  // namespace fuseline
