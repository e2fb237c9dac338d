// Results of a sweep: its rows, the break-even point of fusing, and both for spreadsheets and as JSON.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/break_even.h"
#include "core/profile/shape_sweep.h"
#include "core/support/json.h"

#include <optional>
#include <string>
#include <vector>

namespace fuseline {

/// Figures of a measured row.
struct SweepFigures {
  SampleStats unfused, fused;  // end to end
  RatioStats speedup;          // of fusing, within rounds
  /// How much faster the fused plan is than that of the first recipe at the same sizes. They were measured one after
  /// the other, not in the same rounds. Nothing: it is of the first recipe, or that one was not measured.
  std::optional<RatioStats> overFirstRecipe = {};
};

struct SweepRow {
  SweepPoint point;
  std::optional<RunRecord> record = {};  // nothing: it was not measured; else with both variants
  SweepFigures figures = {};             // of the record
  std::string reason = {};               // why it was not measured
  std::string communication = {};        // sentences about that of several ranks, in the fused plan

  bool isMeasured() const { return record.has_value(); }
  const VariantRecord& unfusedPlan() const { return *record->variant("unfused"); }
  const VariantRecord& fusedPlan() const { return *record->variant("fused"); }
};
/// With figures, which take a moment to find.
SweepRow measuredRow(SweepPoint point, RunRecord record);

struct SweepResult {
  std::string pipelineName;
  std::string deviceName;
  ShapeSweep sweep;
  std::vector<SweepRow> rows;  // the measured ones, in the order of the points
};

/// Appends a row, and compares it with that of the first recipe.
void addRow(SweepResult& result, SweepRow row);

/// Points that differ only in the size along the first axis, and the break-even point of fusing among them.
struct SweepLine {
  SweepPoint fixed;  // without the first axis
  BreakEven breakEven;

  /// "MXFP8BlockScaling, H = 4096: fused is faster from M = 512 on"
  std::string sentence(const std::string& symbol) const;
};
/// In the order of the rows, as far as they were measured.
std::vector<SweepLine> linesOf(const SweepResult& result);

/// Rules of the fused steps of a plan, in its order, as often as they were applied.
std::vector<std::string> appliedRules(const VariantRecord& plan);

std::string sweepCsv(const SweepResult& result);
Json toJson(const SweepResult& result);
Json sweepSchema();

}  // namespace fuseline
