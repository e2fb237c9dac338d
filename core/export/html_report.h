// A self-contained page of a run: to read, to print, and to load again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/drawing/graph_layout.h"
#include "core/export/html_comparison.h"
#include "core/profile/run_record.h"
#include "core/support/result.h"

#include <span>
#include <string>

namespace fuseline {

/// A self-contained HTML file: the result, the plans, the steps, why other fusions did not apply, how and where it was
/// measured, and the record itself, which loadRunRecord() reads. Names are escaped. Works without scripts; with them a
/// click sorts the table, and shows the ops of the graph that a step runs. Errors: none.
Result<std::string> htmlReport(const RunRecord& record);
/// The same, with comparisons with other runs after its steps, and with its graph, if layOut can lay it out.
std::string htmlReportBeside(const RunRecord& record, std::span<const NamedRun> bases, const LayOutGraph& layOut = {});

}  // namespace fuseline
