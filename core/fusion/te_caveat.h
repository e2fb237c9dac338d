// TransformerEngine's requirements for a fusion in addition to its ops, or why its exported module cannot have it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/rule.h"
#include "core/graph/in_place_hazards.h"

#include <span>
#include <string>
#include <vector>

namespace fuseline {

/// "in TransformerEngine only with NVTE_CUTEDSL_FUSED_GROUPED_MLP=1"; empty: nothing. Hazards: the ops that
/// `export --to te` takes out of place, so that its module does not have their fusions.
std::string teCaveat(const Graph& graph, const FusionRule& rule, std::span<const NodeId> nodes,
                     const std::vector<InPlaceHazard>& hazards);

}  // namespace fuseline
