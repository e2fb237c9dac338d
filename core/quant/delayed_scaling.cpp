// Updates of delayed scaling, and the names of its state tensors.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/delayed_scaling.h"

#include "core/quant/scale_math.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// The maximum of the history and the step's amax.
float largest(std::span<const float> history, float last) {
  return std::accumulate(history.begin() + 1, history.end(), last, [](float a, float b) { return std::fmax(a, b); });
}

/// Drops the oldest amax, in row 1, and makes row 0 free for the next step.
void roll(std::span<float> history, float last) {
  if (history.size() > 1) std::shift_left(history.begin() + 1, history.end(), 1);
  history.back() = last;
  history.front() = 0.0F;
}

}  // namespace

void updateDelayedScaling(float& scale, std::span<float> history, const DelayedUpdate& update) {
  const float last = history.front();
  if (last == 0.0F) return;
  const float used = update.takesMostRecent ? last : largest(history, last);
  scale = delayedScale(used, scale, update.maxFinite, update.margin);
  roll(history, last);
}

int frozenSteps(std::span<const float> history) {
  for (std::size_t row = history.size(); row-- > 1;)
    if (std::isinf(history[row])) return static_cast<int>(row);
  return 0;
}

std::optional<Attributes> delayedFields(const Recipe& recipe) {
  const RecipeDefinition& delayed = *findRecipe("DelayedScaling");
  if (recipe.definition().hasState) return recipe.fields();
  for (const RoleOverride& special : recipe.overrides())
    if (special.quantizer && special.quantizer->recipe == &delayed) return special.quantizer->fields;
  const auto isDelayed = [&](OperandRole role) {
    const auto quantizer = recipe.quantizerFor(role);
    return quantizer && quantizer->isDelayed;
  };
  if (std::ranges::none_of(operandRoles(), isDelayed)) return std::nullopt;
  return Recipe::create(delayed)->fields();
}

/// Scales belong to a format; margin, algorithm and length only shape the next update.
std::string stateIdentity(const Recipe& recipe) {
  std::string identity = fmt::format("{}-{}", recipe.name(), delayedFields(recipe)->text("fp8_format"));
  for (const RoleOverride& special : recipe.overrides())
    if (special.format)
      identity += fmt::format("{}{}-{}-{}-{}", special.op.empty() ? "" : "-", special.op,
                              special.tensor ? roleName(*special.tensor) : "any",
                              special.gemm ? roleName(*special.gemm) : "any", formatName(*special.format));
  return identity;
}

}  // namespace fuseline
