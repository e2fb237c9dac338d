// Sorts the rounds of two runs into bins of the same width.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timings/round_comparison.h"

#include "ui/theme/format.h"
#include "ui/widgets/translated.h"

#include <algorithm>
#include <cmath>

namespace fuseline::ui {

namespace {

constexpr std::size_t kFewestBins = 8;
constexpr std::size_t kMostBins = 40;

const SampleStrip* stripOf(const SamplePlot& plot, bool isFused) {
  const auto found = std::ranges::find(plot.strips, isFused, &SampleStrip::isFused);
  return found == plot.strips.end() ? nullptr : &*found;
}

std::size_t numBinsFor(std::size_t numRounds) {
  const auto root = static_cast<std::size_t>(std::sqrt(static_cast<double>(numRounds)));
  return std::clamp(2 * root, kFewestBins, kMostBins);
}

RoundHistogram histogramOf(const SampleStrip& strip, const RoundComparison& comparison, std::size_t numBins) {
  RoundHistogram histogram{.stats = strip.stats, .shares = std::vector<double>(numBins, 0.0)};
  for (const double ns : strip.ns) {
    const double share = std::clamp(comparison.axis.shareOf(comparison.inUnit(ns)), 0.0, 1.0);
    const auto bin = static_cast<std::size_t>(share * static_cast<double>(numBins));
    histogram.shares[std::min(bin, numBins - 1)] += 1.0 / static_cast<double>(strip.ns.size());
  }
  return histogram;
}

/// The part of time in which either run has rounds that are not far from the others.
void chooseAxis(RoundComparison& comparison, const SamplePlot& base, const SamplePlot& next) {
  const double low = std::min(base.axis.low * base.unit.size, next.axis.low * next.unit.size);
  const double high = std::max(base.axis.high * base.unit.size, next.axis.high * next.unit.size);
  comparison.unit = timeUnitFor(high);
  comparison.axis = {.low = comparison.inUnit(low), .high = comparison.inUnit(high)};
}

/// The same plan of both.
void keepOnly(SamplePlot& plot, bool isFused) {
  std::erase_if(plot.strips, [isFused](const SampleStrip& strip) { return strip.isFused != isFused; });
  chooseAxis(plot);
}

}  // namespace

double RoundComparison::largestShare() const {
  double largest = 0.0;
  for (const RoundHistogram* side : {&base, &next})
    for (const double share : side->shares) largest = std::max(largest, share);
  return largest;
}

RoundComparison compareRoundsOf(const RunRecord& run, const Baseline& baseline, const TimingsRow& row) {
  SamplePlot next = samplePlot(run, row);
  SamplePlot base = samplePlot(*baseline.record, row);
  RoundComparison comparison{.title = next.title,
                             .baseline = QStringLiteral("%1: %2").arg(baseline.letter(), baseline.name),
                             .slot = baseline.slot};
  const bool isFused = stripOf(next, true) && stripOf(base, true);
  if (!stripOf(next, isFused) || !stripOf(base, isFused)) {
    comparison.missing = next.strips.empty()
                             ? translated("This run has no rounds for this row.")
                             : translated("Baseline %1 has no rounds for this row.").arg(baseline.letter());
    return comparison;
  }
  keepOnly(next, isFused);
  keepOnly(base, isFused);
  const SampleStrip& now = next.strips.front();
  const SampleStrip& then = base.strips.front();
  comparison.title += QStringLiteral(" · ") + now.plan;
  chooseAxis(comparison, base, next);
  const std::size_t numBins = numBinsFor(std::max(now.ns.size(), then.ns.size()));
  comparison.next = histogramOf(now, comparison, numBins);
  comparison.base = histogramOf(then, comparison, numBins);
  comparison.change = {.unit = "ns",
                       .base = then.stats,
                       .next = now.stats,
                       .change = changeBetween(*baseline.record, run, then.ns, now.ns)};
  return comparison;
}

QString wordsOf(const RoundComparison& comparison) {
  if (!comparison.missing.isEmpty()) return comparison.missing;
  const auto text = [&](const SampleStats& stats) {
    return QStringLiteral("%1 %2").arg(toQt(comparison.unit.timeOf(stats)), unitText(comparison.unit));
  };
  const QString words = translated("%1: %2, now %3: %4")
                            .arg(comparison.baseline.section(u':', 0, 0), text(comparison.base.stats),
                                 text(comparison.next.stats), changeInterval(comparison.change));
  return comparison.change.change.isSignificant() ? words : words + translated(", not statistically significant");
}

}  // namespace fuseline::ui
