// Speed-ups as table cells, and ratios as JSON.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/cli/table.h"
#include "core/profile/comparison_text.h"
#include "core/support/json.h"

namespace fuseline::cli {

/// "1.25x" in the colour of its sign; "~1.02x" when it could be chance.
Cell speedupCell(const RatioStats& speedup);

/// "(0.97x)" of a step that both plans have: no speed-up, whatever it is.
Cell ratioOfSameStepCell(const RatioStats& speedup);

/// {"median": 1.25, "low": 1.24, "high": 1.27}
Json ratioJson(const RatioStats& ratio);

}  // namespace fuseline::cli
