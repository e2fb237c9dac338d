// A comparison of two runs as text, as JSON, and held against gates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/cli/gate_report.h"
#include "app/cli/table.h"
#include "core/profile/comparison_text.h"
#include "core/profile/run_comparison.h"
#include "core/support/json.h"
#include "core/support/output_schema.h"

#include <string>
#include <vector>

namespace fuseline::cli {

Cell changeCell(const MetricChange& metric);
/// In the unit of the metric; empty where the run does not have it.
Cell valueCell(const MetricChange& metric, const SampleStats& stats, const ColumnUnit& time);
Cell spreadCell(const SampleStats& stats);
std::string labelOf(const MetricChange& metric);
ColumnUnit timeUnitOf(const RunComparison& comparison);

/// Totals and steps of base and new, with the change of each.
std::string comparisonTable(const RunComparison& comparison, bool hasColour);
/// How the figures were come by, for the end of a table: in paragraphs that are not wrapped yet.
std::string comparisonLegend(const RunComparison& comparison);
/// "2 steps new, 1 gone."; empty: none.
std::string newAndGoneText(const RunComparison& comparison, const std::string& against);

/// As `compare --json` says it, without gates and notes.
Json comparisonJson(const RunComparison& comparison);
schema::Fields comparisonFields();

/// Errors (Usage): as parseGate().
Result<std::vector<Gate>> parseGates(const std::vector<std::string>& texts);
/// Errors: as check().
Result<std::vector<GateReport>> checkGates(const std::vector<Gate>& gates, const RunComparison& comparison);

}  // namespace fuseline::cli
