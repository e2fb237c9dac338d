// Requirements of TransformerEngine's quantizers, in addition to those of its recipes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "core/quant/recipe.h"

#include <optional>

namespace fuseline {

/// no: te.ops raises for this op under the recipe, although Fuseline runs it. The verdict names the way out.
Verdict isTakenByTe(const Graph& graph, const Node& node, const std::optional<Recipe>& recipe);

}  // namespace fuseline
