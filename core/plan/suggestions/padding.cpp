// Sizes that keep a layer from being quantized.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/suggestions/sources.h"

namespace fuseline {

std::vector<Proposal> suggestion_sources::padding(const SuggestionContext& context) {
  std::vector<Proposal> proposals;
  for (const Diagnostic& diagnostic : context.analysis.lowered.diagnostics)
    if (diagnostic.code == "recipe-shape")
      for (const Repair& repair : diagnostic.repairs)
        proposals.push_back(
            {.source = "padding",
             .node = diagnostic.node,
             .kind = SuggestionKind::ChangesBehavior,
             .repair = repair,
             .caution = "Shapes of the pipeline change: pad its inputs, and remove the padding from its results."});
  return proposals;
}

}  // namespace fuseline
