// The pipeline of a run as it was measured: its document, with what the run put in place of the document's own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/analysis.h"
#include "core/profile/run_record.h"

#include <string>
#include <vector>

namespace fuseline {

struct MeasuredPipeline {
  PipelineDocument document;
  PassKind pass = PassKind::Training;
  /// What was put into the document, for people: "M = 8192", "recipe MXFP8BlockScaling".
  std::vector<std::string> changes;
};

/// Errors: a sentence about the embedded pipeline, or about a setting that does not fit it.
Result<MeasuredPipeline> measuredPipeline(const RunRecord& run);

/// Names of steps that one side has and the other has not: of the run, and of the plans of an analysis. Empty: both are
/// the same plans.
std::vector<std::string> differingSteps(const RunRecord& run, const Analysis& analysis);

}  // namespace fuseline
