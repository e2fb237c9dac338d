// PipelineDifference: the differences between two pipelines, in their documents, in their plans and in the plans'
// needs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/compare/document_difference.h"
#include "core/fusion/plan_difference.h"
#include "core/plan/analysis.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace fuseline {

/// A predicted need of a plan, for both pipelines.
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
  /// Differences between the fused plans; empty, like the figures, if one of the pipelines has errors and therefore no
  /// plan.
  std::vector<PlanListDifference> plans = {};
  std::vector<PlanFigure> figures = {};
};

/// A document and its analysis.
struct AnalysedPipeline {
  const PipelineDocument& document;
  const Analysis& analysis;
};

/// Both must be analyzed in the same way; otherwise the plans differ by that, too.
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
