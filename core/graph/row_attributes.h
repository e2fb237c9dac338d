// Attributes of an op that computes the last rows of its tensors only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"

#include <cstdint>

namespace fuseline {

/// The op's attributes from this row on: random numbers are those of the whole tensor.
Attributes attributesFromRow(const Graph& graph, NodeId id, std::int64_t firstRow);

}  // namespace fuseline
