// Python source that makes a pipeline of te.ops, and a program that times and checks it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/pipeline_exporter.h"

namespace fuseline {

/// A module `Pipeline`, its recipe, and what TransformerEngine is expected to fuse; started as a program it measures,
/// and compares plans and tensors. The pipeline file stands at the end, in comments (embedded_pipeline.h). An op
/// in place that would destroy a tensor or a gradient is exported as one that is not, with a note. Errors: an op of
/// one's own that is not elementwise, the module of an External that is no expression, and what refuseForTe() finds.
Result<PipelineText> tePython(const ExportedPipeline& pipeline);

}  // namespace fuseline
