// Input and output of a source of suggestions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/suggestions.h"

namespace fuseline {

/// A document without errors, and its analysis.
struct SuggestionContext {
  const PipelineDocument& document;
  const AnalysisOptions& options;
  const Analysis& analysis;
};

namespace suggestion_sources {
#define FUSELINE_CATALOG_ENTRY(name) std::vector<Proposal> name(const SuggestionContext& context);
#include "core/plan/suggestions/suggestions.inc"
#undef FUSELINE_CATALOG_ENTRY
}  // namespace suggestion_sources

}  // namespace fuseline
