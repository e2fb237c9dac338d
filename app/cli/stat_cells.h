// Speed-ups, rates and peaks as table cells.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/cli/table.h"
#include "core/profile/comparison_text.h"
#include "core/profile/device_peaks.h"

#include <string>
#include <string_view>

namespace fuseline::cli {

/// GFLOP/s or TFLOP/s; `size` in GFLOP/s.
ColumnUnit rateUnitFor(double largestGflops);

/// "1.25", "12.5", "125": with three digits, where there are no more before the point; empty for 0.
std::string threeDigits(double value);

/// "0", "0.012 %", "3.4 %", "99 %": of a share from 0 to 1.
std::string shareText(double share);

/// "peaks, measured in this run: copy 4200.0 GB/s (88 % of the data sheet), f32 100 GFLOP/s", those that there are; the
/// share where the device's data sheet is known.
std::string peaksText(const DevicePeaks& peaks, std::string_view device);

/// "1.25x" in the colour of its sign; "~1.02x" when it is not significant.
Cell speedupCell(const RatioStats& speedup);

/// "(0.97x)" of a step that both plans have: no speed-up, whatever it is.
Cell ratioOfSameStepCell(const RatioStats& speedup);

}  // namespace fuseline::cli
