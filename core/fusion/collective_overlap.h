// Layers that communicate while they compute.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"

namespace fuseline {

/// Does this linear op of a rank send its input gradient, so that its weight gradient can be computed meanwhile?
/// TransformerEngine does so in column-parallel layers.
bool sendsInputGradient(const Graph& graph, NodeId id);

/// Does this linear op of a rank compute both gradients from an output gradient that is gathered in high precision?
/// TransformerEngine's Userbuffers gather it during the dgrad GEMM.
bool gathersOutputGradient(const Graph& graph, NodeId id);

}  // namespace fuseline
