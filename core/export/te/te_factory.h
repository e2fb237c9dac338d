// The quantizers of a CustomRecipe as the function that TransformerEngine calls for them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "core/quant/recipe.h"

#include <map>
#include <string>
#include <vector>

namespace fuseline {

/// Name of the function that TransformerEngine calls as CustomRecipe's qfactory.
inline constexpr const char* kQuantizerFactory = "quantizer_factory";

struct TeFactory {
  /// "def quantizer_factory(role): ...", including its imports.
  std::string text;
  /// The ops that it distinguishes, with the names that they must have.
  std::map<NodeId, std::string> names;
  std::vector<std::string> notes;
};

/// recipe: a CustomRecipe that the graph was given.
TeFactory teFactory(const Graph& graph, const Recipe& recipe);

}  // namespace fuseline
