// PlannedWindow: the neighborhood of a fusion, planned with and without it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"
#include "core/plan/plan.h"

#include <vector>

namespace fuseline {

/// A fusion at one place, whether it is applied or not.
struct FusionPlace {
  const FusionRule* rule = nullptr;
  std::vector<NodeId> nodes;

  bool operator==(const FusionPlace&) const = default;
};

/// The report without the fusions that need ops of this one, and without itself: with their ops by themselves.
/// Quantization is then fused where the entries allow it. fusion: the options with which the report was made.
FusionReport reportWithout(const Graph& graph, const FusionOptions& fusion, const FusionReport& report,
                           const FusionPlace& place);
/// The same with this fusion instead.
FusionReport reportWith(const Graph& graph, const FusionOptions& fusion, const FusionReport& report,
                        const FusionPlace& place);

/// Can the fusion be applied once no other fusion has its ops? Switches, prices and measurements do not matter here.
bool isLegalBeside(const Graph& graph, const FusionOptions& fusion, const FusionReport& others,
                   const FusionPlace& place);

}  // namespace fuseline
