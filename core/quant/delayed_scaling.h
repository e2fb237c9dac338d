// State that DelayedScaling keeps from step to step: scales, and the amaxes they follow from.
// Source: TransformerEngine's fused update, which differs from its unfused one where an amax is 0.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/recipe.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fuseline {

struct DelayedUpdate {
  int margin = 0;
  /// Otherwise the largest of the history.
  bool takesMostRecent = false;
  /// Largest finite value of the tensor's format.
  float maxFinite = 448.0F;
};

/// Ends a step: shifts the history of a tensor and updates its scale. A tensor with the amax 0, which was not used,
/// keeps both. history: row 0 is the amax of the current step, over all ranks; the others are earlier ones, the oldest
/// first.
void updateDelayedScaling(float& scale, std::span<float> history, const DelayedUpdate& update);

/// Number of further steps for which an infinite amax keeps the scale unchanged; 0: none. history: after an update.
int frozenSteps(std::span<const float> history);

/// The fields of DelayedScaling, where a recipe is that, or takes quantizers of it.
std::optional<Attributes> delayedFields(const Recipe& recipe);

/// The part of a recipe with delayed scales that its states depend on: recipes with the same one share them.
std::string stateIdentity(const Recipe& recipe);

}  // namespace fuseline
