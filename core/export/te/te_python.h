// Python source that builds a pipeline from te.ops, and a program that times and checks it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/pipeline_exporter.h"

namespace fuseline {

/// A module `Pipeline`, its recipe, and TransformerEngine's expected fusions; run as a program it measures, and
/// compares plans and tensors. The pipeline file is at the end, in comments (embedded_pipeline.h). An in-place op that
/// would destroy a tensor or a gradient is exported without in_place, with a note. Errors: a user-defined op that is
/// not elementwise, an External with a module that is no expression, and the errors of refuseForTe().
Result<PipelineText> tePython(const ExportedPipeline& pipeline);

}  // namespace fuseline
