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

/// Ops of a document around those that edits name.
struct EditedWindow {
  std::set<std::string> ops;  // those whose fusions may change
  PipelineDocument document;  // of these, and of all that their fusions depend on
};
/// Cut out of the document after the edits. earlier: the analysis of the document before them. nullopt: there are too
/// many ops, or the edits may affect others.
std::optional<EditedWindow> windowAround(const EditExtent& edits, const PipelineDocument& document,
                                         const Analysis& earlier);

/// earlier: as above, with the same options. nullopt: the edits change tensors outside, or there is an error in the
/// window.
std::optional<Neighborhood> neighborhoodOf(EditedWindow window, const Analysis& earlier, const AnalysisOptions& options,
                                           KnownSavings& known);

}  // namespace fuseline
