// Sizes that keep a layer from being quantized.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/suggestions/sources.h"

namespace fuseline {

std::vector<Proposal> suggestion_sources::padding(const SuggestionContext& context) {
  std::vector<Proposal> proposals;
  for (const Diagnostic& diagnostic : context.analysis.lowered.diagnostics)
    if (diagnostic.code == "recipe-shape")
      for (const Repair& repair : diagnostic.repairs)
        proposals.push_back({.source = "padding",
                             .node = diagnostic.node,
                             .kind = SuggestionKind::ChangesBehavior,
                             .repair = repair,
                             .caution = "The pipeline then takes other shapes: its caller must pad, and cut off what "
                                        "padding adds to the results."});
  return proposals;
}

}  // namespace fuseline
