// Requirements of TransformerEngine's quantizers, in addition to those of its recipes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "core/quant/recipe.h"

#include <optional>

namespace fuseline {

/// The attribute by which a GroupedLinear has a single parameter for all groups; nullptr: it has none.
const char* singleParameterOf(const Node& node);
/// Does a GroupedLinear get one parameter a group, because TransformerEngine has no kernels for shared ones in float32?
bool isWrittenApart(const Node& node);
/// Has TransformerEngine grouped GEMMs of its own under the recipe?
bool hasGroupedKernels(const Recipe& recipe);

/// no: te.ops raises for this op, here under the recipe, although Fuseline runs it. The verdict names the way out.
Verdict isTakenByTe(const Graph& graph, const Node& node, const std::optional<Recipe>& recipe);

}  // namespace fuseline
