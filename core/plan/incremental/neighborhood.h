// Fuses the neighborhood of an edit alone, so that it is known long before the plan of a large graph.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/edit/edit_extent.h"
#include "core/plan/analysis.h"

#include <memory>
#include <optional>
#include <set>
#include <string>

namespace fuseline {

struct KnownSavings;

/// A part of a pipeline after an edit. For `ops`, `window` has the tensors, problems and fusions of the complete
/// analysis to come. It has no plans.
struct Neighborhood {
  PipelineDocument document;  // of the window
  Analysis window;
  std::set<std::string> ops;
};

/// Ops around those that an edit names; empty: too many, or the edit may affect others. earlier: the analysis of the
/// document before the edit.
struct NeighborhoodOps {
  std::set<std::string> known;   // those whose fusions may change
  std::set<std::string> window;  // these, and all that their fusions depend on
};
std::optional<NeighborhoodOps> opsAround(const Analysis& earlier, const EditExtent& extent);

/// nullopt: the edit changes tensors outside, or there is an error in the window.
std::optional<Neighborhood> neighborhoodOf(const PipelineDocument& document, const Analysis& earlier,
                                           NeighborhoodOps ops, const AnalysisOptions& options, KnownSavings& known);

}  // namespace fuseline
