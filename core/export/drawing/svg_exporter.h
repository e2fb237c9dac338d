// A pipeline as an SVG that opens as that pipeline.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/pipeline_exporter.h"

namespace fuseline {

/// Ops in the colours of their categories, what is fused in frames, and the pipeline within. Light or dark, as whoever
/// shows it prefers. Errors: nobody lays out graphs in this build; and those of svgOf().
Result<PipelineText> svgDrawing(const ExportedPipeline& pipeline);

}  // namespace fuseline
