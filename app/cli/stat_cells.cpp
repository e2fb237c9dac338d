// One way to write a speed-up, a rate and a roof.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/stat_cells.h"

#include <utility>

#include <fmt/format.h>

namespace fuseline::cli {

ColumnUnit rateUnitFor(double largestGflops) {
  return largestGflops >= 1e3 ? ColumnUnit{"TFLOP/s", 1e3} : ColumnUnit{"GFLOP/s", 1.0};
}

std::string threeDigits(double value) {
  if (value <= 0.0) return "";
  return fmt::format("{:.{}f}", value, value < 10.0 ? 2 : value < 100.0 ? 1 : 0);
}

std::string roofsText(const DeviceRoofs& roofs) {
  std::string text = fmt::format("roofs, measured in this run: copy {:.1f} GB/s", roofs.copyGBps);
  for (const auto& [name, gflops] :
       {std::pair("f32", roofs.fmaF32Gflops), {"bf16", roofs.bf16Gflops}, {"FP8", roofs.fp8Gflops}})
    if (gflops > 0.0) text += fmt::format(", {} {:.0f} GFLOP/s", name, gflops);
  return text;
}

Cell ratioOfSameStepCell(const RatioStats& speedup) { return {fmt::format("({:.2f}x)", speedup.median), Style::Dim}; }

Cell speedupCell(const RatioStats& speedup) {
  if (!speedup.isSignificant()) return {ratioText(speedup), Style::Dim};
  return {ratioText(speedup), speedup.median > 1.0 ? Style::Good : Style::Bad};
}

}  // namespace fuseline::cli
