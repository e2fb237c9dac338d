// Speed-ups in the colour of their sign.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/stat_cells.h"

#include <fmt/format.h>

namespace fuseline::cli {

Cell ratioOfSameStepCell(const RatioStats& speedup) { return {fmt::format("({:.2f}x)", speedup.median), Style::Dim}; }

Cell speedupCell(const RatioStats& speedup) {
  if (!speedup.isSignificant()) return {ratioText(speedup), Style::Dim};
  return {ratioText(speedup), speedup.median > 1.0 ? Style::Good : Style::Bad};
}

Json ratioJson(const RatioStats& ratio) { return {{"median", ratio.median}, {"low", ratio.low}, {"high", ratio.high}}; }

}  // namespace fuseline::cli
