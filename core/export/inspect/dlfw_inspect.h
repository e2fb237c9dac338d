// The format "dlfw-inspect": findings of a pipeline or of a run for the training of the real model.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/pipeline_exporter.h"
#include "core/profile/run_record.h"

#include <string>

namespace fuseline {

/// Every linear layer, with the overrides of the recipe. Errors: those of inspectConfig().
Result<PipelineText> dlfwInspect(const ExportedPipeline& pipeline);

/// Configuration for the layers with the largest losses. Errors: those of inspectConfig() and measuredPipeline(), and a
/// pipeline that this version cannot plan.
Result<std::string> dlfwInspectOfRun(const RunRecord& record);

}  // namespace fuseline
