// Sums in place that would destroy what somebody still reads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"

#include <string>
#include <vector>

namespace fuseline {

struct InPlaceHazard {
  NodeId node = -1;    // an AddExtraInput with in_place
  std::string reason;  // "norm keeps save.extra, which is the same tensor as x, for backward"
};

/// AddExtraInput with in_place writes its sum into the extra input, in TransformerEngine into the tensor itself,
/// whoever else may have it: MakeExtraOutput, Identity and Reshape hand on the tensor that they got. Fuseline plans
/// such a sum in place only where nobody is left to read the tensor, so the pipeline may say in_place where
/// TransformerEngine must not.
std::vector<InPlaceHazard> inPlaceHazards(const Graph& graph);

}  // namespace fuseline
