// Requirements of TransformerEngine's kernels for GroupedLinear, which depend on the GPU and the recipe.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "core/quant/recipe.h"

#include <optional>
#include <string>
#include <vector>

namespace fuseline {

/// The attribute by which a GroupedLinear has a single parameter for all groups; nullptr: it has none.
const char* singleParameterOf(const Node& node);

/// no: a single parameter for all groups needs TransformerEngine's native grouped GEMM, which has no such
/// recipe.
Verdict takesSingleParameter(const Node& node, const std::optional<Recipe>& recipe);

/// Notes on the number of rows of each group, where TransformerEngine's grouped kernels on such a GPU need larger
/// multiples than its other kernels and Fuseline's.
std::vector<std::string> groupRowNotes(const Graph& graph, const std::optional<Recipe>& recipe,
                                       ComputeCapability capability);

}  // namespace fuseline
