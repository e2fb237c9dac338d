// Python source of a pipeline as modules of PyTorch, and a program that times and checks them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/pipeline_exporter.h"

namespace fuseline {

/// A module `Pipeline`, with a class for each block. Run as a program it measures, and compares tensors with those of a
/// run; where the pipeline has the table of a model's own names it loads that model's weights. The pipeline file is at
/// the end, in comments. Recipes are left out, with a note. Errors: an op that PyTorch cannot express: communication,
/// External, packed sequences.
Result<PipelineText> torchPython(const ExportedPipeline& pipeline);

}  // namespace fuseline
