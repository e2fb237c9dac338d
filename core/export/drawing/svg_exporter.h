// A pipeline, or a run of one, as an SVG that opens as that pipeline.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/pipeline_exporter.h"
#include "core/profile/run_record.h"

namespace fuseline {

/// Ops in the colors of their categories, fusions in frames, and the embedded pipeline. Light or dark, as the viewer
/// prefers. Errors: this build cannot lay out graphs; and those of svgOf().
Result<PipelineText> svgDrawing(const ExportedPipeline& pipeline);

/// The same for the pipeline in a run, as it was measured: ops shaded by the time of their steps. Errors: also those of
/// MeasuredGraph::of().
Result<std::string> svgDrawingOfRun(const RunRecord& record, const LayOutGraph& layOut);

}  // namespace fuseline
