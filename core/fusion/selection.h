// Chooses among overlapping fusions the set that gains most.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/gain.h"
#include "core/graph/graph.h"

#include <cstddef>
#include <span>
#include <vector>

namespace fuseline {

/// A fusion that would be legal: a path of ops in forward order.
struct Candidate {
  std::span<const NodeId> nodes;
  Gain gain;
};

/// The candidates of the set with the highest total gain in which no op stands twice, as ascending indices. Of equal
/// sets the one that ends earlier along the ops wins, then the earlier candidate. Precondition: where two candidates
/// both go on behind an op, they go on to the same op. Takes time in proportion to the number of ops and the length of
/// all candidates.
std::vector<std::size_t> bestSet(std::span<const Candidate> candidates, std::size_t numNodes,
                                 const DeviceModel& device);

}  // namespace fuseline
