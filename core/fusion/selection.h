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

/// The set of candidates with the highest total gain in which no op occurs twice, as ascending indices. Among equal
/// sets the one that ends earlier along the ops wins, then the earlier candidate. Precondition: if two candidates both
/// continue after an op, they continue with the same op. Time is proportional to the number of ops plus the length of
/// all candidates.
std::vector<std::size_t> bestSet(std::span<const Candidate> candidates, std::size_t numNodes,
                                 const DeviceModel& device);

}  // namespace fuseline
