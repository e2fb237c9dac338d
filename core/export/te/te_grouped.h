// Requirements of TransformerEngine's kernels for GroupedLinear, which depend on the GPU and the recipe.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "core/quant/recipe.h"

#include <optional>
#include <string>
#include <vector>

namespace fuseline {

/// Notes on the number of rows of each group, where TransformerEngine's grouped kernels on such a GPU need larger
/// multiples than its other kernels and Fuseline's.
std::vector<std::string> groupRowNotes(const Graph& graph, const std::optional<Recipe>& recipe,
                                       ComputeCapability capability);

}  // namespace fuseline
