// Settings of recipes that te.ops does not apply, although TransformerEngine's recipes have them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"
#include "core/quant/recipe.h"

#include <string>
#include <vector>

namespace fuseline {

/// A sentence for each setting that every op of te.ops ignores and that is not at its default.
std::vector<std::string> ignoredByTeOps(const Recipe& recipe);

/// The same for a setting that this op ignores; empty: there is none.
std::string ignoredByTeOp(const Node& node, const Recipe& recipe);

}  // namespace fuseline
