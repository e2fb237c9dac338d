// What a sweep measured, as a table for the terminal, for spreadsheets and as JSON.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/break_even.h"
#include "core/profile/shape_sweep.h"
#include "core/support/json.h"

#include <optional>
#include <string>
#include <vector>

namespace fuseline::cli {

struct SweepRow {
  SweepPoint point;
  std::optional<RunRecord> record = {};  // nothing: it was not measured
  std::string reason = {};               // why not

  bool isMeasured() const { return record.has_value(); }
};

struct SweepResult {
  std::string pipelineName;
  std::string deviceName;
  ShapeSweep sweep;
  std::vector<SweepRow> rows;  // as far as it came, in the order of the points
};

std::string sweepTable(const SweepResult& result, bool hasColour);
std::string sweepCsv(const SweepResult& result);
Json toJson(const SweepResult& result);

}  // namespace fuseline::cli
