// In-place ops that would destroy a tensor or a gradient with a later consumer if TransformerEngine runs them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"

#include <optional>
#include <string>
#include <vector>

namespace fuseline {

struct InPlaceHazard {
  NodeId node = -1;    // an AddExtraInput or a MakeExtraOutput with in_place
  std::string reason;  // "norm keeps that tensor, save.y, for backward"
};

/// AddExtraInput with in_place writes its sum into the extra input, in TransformerEngine into the tensor itself, even
/// if others share it: MakeExtraOutput, Identity and Reshape pass their input tensor on. MakeExtraOutput with in_place
/// writes the sum of its gradients into the gradient of its extra output, which AddExtraInput, Bias and others pass on
/// in the same way, and which a caller may have provided. Fuseline runs both in place only if the tensor has no later
/// consumer, so a pipeline may set in_place where TransformerEngine must not. Hazards are found in the order of the
/// nodes; a hazard that was found counts as switched off for later nodes.
std::vector<InPlaceHazard> inPlaceHazards(const Graph& graph);

/// The reason why this AddExtraInput or MakeExtraOutput must not be in place there, independent of its setting.
std::optional<std::string> inPlaceHazard(const Graph& graph, NodeId node);

/// "TransformerEngine would write the sum into the extra input itself, and norm keeps that tensor, save.y, for
/// backward".
std::string hazardText(const Graph& graph, const InPlaceHazard& hazard);

}  // namespace fuseline
