// Compares documents, plans and figures.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/pipeline_difference.h"

#include <algorithm>
#include <string_view>

namespace fuseline {

namespace {

std::vector<PlanFigure> figuresOf(const Analysis& base, const Analysis& next) {
  std::vector<PlanFigure> figures;
  const auto add = [&](const char* variant, const Plan& before, const Plan& after) {
    figures.push_back({variant, "peakBytes", "peak memory", true, before.peakBytes(), after.peakBytes()});
    figures.push_back({variant, "savedForBackwardBytes", "saved for backward", true, before.savedForBackwardBytes,
                       after.savedForBackwardBytes});
    figures.push_back({variant, "launches", "steps", false, before.numLaunches(), after.numLaunches()});
  };
  add("unfused", base.unfusedPlan(), next.unfusedPlan());
  add("fused", *base.fusedPlan, *next.fusedPlan);
  return figures;
}

int& countOf(ChangeCounts& counts, const DocumentChange& change) {
  if (change.section != DocumentChange::Section::Ops || !change.block.empty()) return counts.others;
  switch (change.kind) {
    case DocumentChange::Kind::Added: return counts.added;
    case DocumentChange::Kind::Removed: return counts.removed;
    case DocumentChange::Kind::Renamed: return counts.renamed;
    case DocumentChange::Kind::Changed: return counts.changed;
  }
  return counts.others;
}

}  // namespace

PipelineDifference pipelineDifference(const AnalysedPipeline& base, const AnalysedPipeline& next,
                                      const DifferenceOptions& options) {
  PipelineDifference difference{.changes = documentDifference(base.document, next.document, options)};
  if (!base.analysis.isRunnable() || !next.analysis.isRunnable()) return difference;
  difference.plans =
      planDifference(base.analysis.graph(), base.analysis.report, next.analysis.graph(), next.analysis.report);
  difference.figures = figuresOf(base.analysis, next.analysis);
  return difference;
}

const PlanFigure* findFigure(const PipelineDifference& difference, std::string_view variant, std::string_view name) {
  const auto found = std::ranges::find_if(
      difference.figures, [&](const PlanFigure& figure) { return figure.variant == variant && figure.name == name; });
  return found == difference.figures.end() ? nullptr : &*found;
}

ChangeCounts countChanges(const std::vector<DocumentChange>& changes) {
  ChangeCounts counts;
  for (const DocumentChange& change : changes) ++countOf(counts, change);
  return counts;
}

}  // namespace fuseline
