// How messages name an op.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"

#include <string>

namespace fuseline {

/// "fc1 (Linear)".
std::string nameOf(const Graph& graph, NodeId id);

}  // namespace fuseline
