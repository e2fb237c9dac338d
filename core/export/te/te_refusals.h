// Refusals of a pipeline by TransformerEngine itself, and its requirements on the environment.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"
#include "core/graph/graph.h"
#include "core/quant/recipe.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fuseline {

/// Errors: an op that TransformerEngine's Python or kernels refuse, with an attribute or a dtype that they take;
/// features that the ranks cannot share equally.
Result<void> refuseForTe(const Graph& graph, const std::optional<Recipe>& recipe, std::int64_t ranks);

/// An environment variable that must be set before TransformerEngine is imported, and the reason.
struct TeEnvironment {
  std::string variable;  // "NVTE_GROUPED_LINEAR_SINGLE_PARAM"; its value is 1
  std::string reason;    // "fc1 has single_grouped_weight"
};

/// report: the fusions expected from TransformerEngine.
std::vector<TeEnvironment> teEnvironment(const Graph& graph, const FusionReport& report);

}  // namespace fuseline
