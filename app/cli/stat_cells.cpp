// One way to write a speed-up, a rate and a peak.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/stat_cells.h"

#include "core/profile/roofline.h"

#include <tuple>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {

/// Empty for a peak that is not known.
std::string shareText(double measured, double peak) {
  return peak > 0.0 ? fmt::format(" ({:.0f} % of the data sheet)", 100.0 * measured / peak) : "";
}

}  // namespace

ColumnUnit rateUnitFor(double largestGflops) {
  return largestGflops >= 1e3 ? ColumnUnit{"TFLOP/s", 1e3} : ColumnUnit{"GFLOP/s", 1.0};
}

std::string threeDigits(double value) {
  if (value <= 0.0) return "";
  return fmt::format("{:.{}f}", value, value < 10.0 ? 2 : value < 100.0 ? 1 : 0);
}

std::string shareText(double share) {
  constexpr double kTenPercent = 0.095;  // from which on two digits are whole percents
  if (share == 0.0) return "0";
  return share < kTenPercent ? fmt::format("{:.2g} %", 100.0 * share) : fmt::format("{:.0f} %", 100.0 * share);
}

std::string peaksText(const DevicePeaks& peaks, std::string_view device) {
  const DevicePeaks sheet = publishedPeaks(device).value_or(DevicePeaks());
  std::string text = fmt::format("peaks, measured in this run: copy {:.1f} GB/s", peaks.copyGBps) +
                     shareText(peaks.copyGBps, sheet.copyGBps);
  for (const auto& [name, gflops, peak] : {std::tuple("f32", peaks.fmaF32Gflops, sheet.fmaF32Gflops),
                                           {"bf16", peaks.bf16Gflops, sheet.bf16Gflops},
                                           {"FP8", peaks.fp8Gflops, sheet.fp8Gflops}})
    if (gflops > 0.0) text += fmt::format(", {} {:.0f} GFLOP/s", name, gflops) + shareText(gflops, peak);
  return text;
}

Cell ratioOfSameStepCell(const RatioStats& speedup) { return {fmt::format("({:.2f}x)", speedup.median), Style::Dim}; }

Cell speedupCell(const RatioStats& speedup) {
  if (!speedup.isSignificant()) return {ratioText(speedup), Style::Dim};
  return {ratioText(speedup), speedup.median > 1.0 ? Style::Good : Style::Bad};
}

}  // namespace fuseline::cli
