// Checks the environment of a record, and its steps against the measured peaks.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/doubts.h"

#include "core/profile/roofline.h"

#include <fmt/format.h>

namespace fuseline {

namespace {

/// A step faster by this factor is not explained by scatter. Traffic may come from a cache, which is faster than the
/// peak bandwidth of memory; arithmetic has no such explanation.
constexpr double kBeyondRoofline = 0.8;

std::string neighboursDoubt(const RunRecord& record) {
  const std::string share = record.fact(kNeighboursFact);
  if (share.empty()) return {};
  return fmt::format(
      "Other programs used {} during the rounds, so times are too long and less certain than their intervals. Run "
      "again on an idle machine.",
      share);
}

/// The step that is farthest beyond the peak of its arithmetic.
std::string rooflineDoubt(const RunRecord& record) {
  double least = kBeyondRoofline;
  std::string text;
  for (const VariantRecord& variant : record.variants) {
    const Roofline roofline(record, variant);
    for (const StepRecord& step : variant.steps) {
      if (step.isView) continue;
      const Efficiency efficiency = roofline.of({&step});
      if (efficiency.bound != Bound::Compute || efficiency.timesFromRoofline() >= least) continue;
      least = efficiency.timesFromRoofline();
      text = fmt::format(
          "{} ({}) was {:.1f} times as fast as the {} peak, so the peak measured after the rounds is too low. Run "
          "again on an idle machine.",
          step.name, step.phase, 1.0 / least, arithmeticName(efficiency.peak));
    }
  }
  return text;
}

}  // namespace

std::vector<std::string> doubtsOf(const RunRecord& record) {
  std::vector<std::string> doubts = {neighboursDoubt(record), rooflineDoubt(record)};
  std::erase(doubts, "");
  return doubts;
}

}  // namespace fuseline
