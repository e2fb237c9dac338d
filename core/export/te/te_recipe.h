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
  /// "RECIPE = recipe.MXFP8BlockScaling(...)" and statements for fields without an argument; "RECIPE = None".
  std::string text;
  std::vector<std::string> notes;
  /// For a CustomRecipe: ops that its factory distinguishes, with the names that they must have.
  std::map<NodeId, std::string> names = {};
};

/// Fields have TransformerEngine's names. Fields at TransformerEngine's default are left out, so that its environment
/// variables work as for every other recipe. A CustomRecipe is written as a factory of quantizers, which implements its
/// overrides for the ops of the graph; overrides of other recipes have no counterpart there, which a note reports.
TeRecipe teRecipe(const std::optional<Recipe>& recipe, const Graph& graph = {});

}  // namespace fuseline
