// The pipeline of a run as measured: its document, with the settings of the run applied.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/analysis.h"
#include "core/profile/run_record.h"

#include <string>
#include <vector>

namespace fuseline {

struct MeasuredPipeline {
  PipelineDocument document;
  ExecutionMode pass = ExecutionMode::Training;
  /// The applied settings, for people: "M = 8192", "recipe MXFP8BlockScaling".
  std::vector<std::string> changes;
};

/// Errors: a sentence about the embedded pipeline, or about a setting that does not fit it.
Result<MeasuredPipeline> measuredPipeline(const RunRecord& run);

/// Names of steps that only one side has: the run, or the plans of an analysis. Empty: the plans are the same.
std::vector<std::string> differingSteps(const RunRecord& run, const Analysis& analysis);

}  // namespace fuseline
