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

/// The fused plan, or the unfused one where only that was measured. There is no drawing without somebody who lays it
/// out, of a pipeline or a plan that this version has otherwise, and of one that is too large.
ReportGraph reportGraph(const RunRecord& record, const Comparison& comparison, const LayOutGraph& layOut);

}  // namespace fuseline
