// PipelineDifference: what two pipelines do not have in common, in their documents, in their plans and in what these
// need.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/compare/document_difference.h"
#include "core/fusion/plan_difference.h"
#include "core/plan/analysis.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace fuseline {

/// What a plan is predicted to need, of both pipelines.
struct PlanFigure {
  const char* variant;  // "unfused", "fused"
  const char* name;     // for programs: "peakBytes"
  const char* title;    // for people: "peak memory"
  bool isBytes;
  std::int64_t base = 0;
  std::int64_t next = 0;
};

struct PipelineDifference {
  std::vector<DocumentChange> changes;
  /// Of the fused plans; empty, as the figures are, where one of both has errors and so no plan.
  std::vector<PlanListDifference> plans = {};
  std::vector<PlanFigure> figures = {};
};

/// A document and what was found of it.
struct AnalysedPipeline {
  const PipelineDocument& document;
  const Analysis& analysis;
};

/// Both analysed in the same way, or else the plans differ by that, too.
PipelineDifference pipelineDifference(const AnalysedPipeline& base, const AnalysedPipeline& next,
                                      const DifferenceOptions& options = {});

/// The figure of this plan; nullptr: there are no plans.
const PlanFigure* findFigure(const PipelineDifference& difference, std::string_view variant, std::string_view name);

/// How many ops there are of each kind of change, those in blocks left out, and how many changes of anything else.
struct ChangeCounts {
  int added = 0;
  int removed = 0;
  int changed = 0;
  int renamed = 0;
  int others = 0;
  bool operator==(const ChangeCounts&) const = default;
};
ChangeCounts countChanges(const std::vector<DocumentChange>& changes);

}  // namespace fuseline
