// Recipes as TransformerEngine's Python writes them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "core/quant/recipe.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fuseline {

struct TeRecipe {
  /// "RECIPE = recipe.MXFP8BlockScaling(...)" and statements that set what has no argument; "RECIPE = None".
  std::string text;
  std::vector<std::string> notes;
  /// Of a CustomRecipe: ops that its factory tells apart, by the names that they must have.
  std::map<NodeId, std::string> names = {};
};

/// Fields have TransformerEngine's names. Those with TransformerEngine's default are left out, so that its environment
/// variables mean what they mean for every other recipe. A CustomRecipe is written as a factory of quantizers, which
/// says what its overrides say for the ops of the graph; those of other recipes have no counterpart there: a note says
/// so.
TeRecipe teRecipe(const std::optional<Recipe>& recipe, const Graph& graph = {});

}  // namespace fuseline
