// Conditions on the target of fusing: the recipe and the number of ranks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/rule.h"

#include <string>
#include <vector>

namespace fuseline::rules {

/// There are several ranks. `what`: the feature that one rank does not support: "overlap".
Condition severalRanks(std::string what);
/// The recipe is one of these, by the names of builtinRecipes(); none may be allowed, too. The repair chooses the
/// first.
Condition recipeIsOneOf(std::vector<std::string> names);
Condition recipeIsNoneOrOneOf(std::vector<std::string> names);
/// A field of the recipe has this value, where the recipe has the field. `reason` ends the sentence.
Condition recipeFieldIs(std::string field, AttributeValue value, std::string reason);

}  // namespace fuseline::rules
