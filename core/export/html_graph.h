// The graph of a run within a report: its ops shaded by their share of the time, and tied to the table of steps.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/drawing/graph_layout.h"
#include "core/export/html_steps.h"

namespace fuseline {

struct ReportGraph {
  Html markup;    // with legend and caption; empty: there is no drawing
  OpsOfRows ops;  // by row of the comparison
};

/// The fused plan, or the unfused one if only that was measured. There is no drawing without a layout function, if this
/// version plans the pipeline differently, or if the graph is too large.
ReportGraph reportGraph(const RunRecord& record, const Comparison& comparison, const LayOutGraph& layOut);

}  // namespace fuseline
