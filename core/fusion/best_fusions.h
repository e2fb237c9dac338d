// Chooses from all legal fusions of a pass the set that gains most.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/legality.h"

#include <vector>

namespace fuseline {

/// Adds the chosen fusions to the entries, and every attempt to the attempts.
void fuseBest(const Graph& graph, const FusionOptions& options, const Legality& legality, const Rules& rules,
              EntryList& entries, std::vector<Attempt>& attempts);

}  // namespace fuseline
