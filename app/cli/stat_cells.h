// Statistics as table cells and JSON.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/cli/table.h"
#include "core/profile/stats.h"
#include "core/support/json.h"

#include <string>

namespace fuseline::cli {

/// One unit for a whole column, so that numbers can be compared by eye.
struct ColumnUnit {
  const char* name = "us";
  double size = 1e3;
};
ColumnUnit timeUnitFor(double longestNs);

/// "1.2", the "± %" of tables; ">999" when the machine was busy with something else, "-" of one sample.
std::string spreadText(const SampleStats& stats);

/// "1.25x" in the colour of its sign; "~1.02x" when it could be chance.
Cell speedupCell(const RatioStats& speedup);

/// "(0.97x)" of a step that both plans have: no speed-up, whatever it is.
Cell ratioOfSameStepCell(const RatioStats& speedup);

/// {"median": 1.25, "low": 1.24, "high": 1.27}
Json ratioJson(const RatioStats& ratio);

}  // namespace fuseline::cli
