// The options that verbs share which run a pipeline to measure it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/cli/pipeline_options.h"
#include "core/runtime/pipeline_run.h"

#include <string>

namespace fuseline::cli {

struct MeasuringOptions : PipelineOptions {
  MeasuringOptions() { spec.measuresPeaks = true; }
  bool isQuiet = false;
};

/// Errors: (NoDevice) an architecture to plan for; (Usage) what cannot be read as a setting.
Result<PipelineRunOptions> pipelineRunOptions(const MeasuringOptions& options);

/// Name of the runs of a file: "mlp" of "models/mlp.fuseline".
std::string pipelineNameOf(const PipelineOptions& options);

}  // namespace fuseline::cli
