// Collects the rounds of a step, or of a whole plan, and chooses their axis.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timings/sample_plot.h"

#include "core/profile/step_sums.h"
#include "ui/theme/format.h"
#include "ui/widgets/translated.h"

#include <algorithm>
#include <numeric>

namespace fuseline::ui {

namespace {

/// A sample is an outlier beyond this multiple of the range from P5 to P95.
constexpr double kFar = 1.5;
constexpr double kRoomAround = 0.04;  // of the axis, beside the outermost samples

std::vector<double> fusedSamples(const VariantRecord& fused, const TimingsRow& row) {
  if (row.ofPlan) return row.ofPlan(fused);
  const StepRecord* step = row.times.depth == 0 ? fused.find(row.times.label, row.times.phase) : nullptr;
  return step ? step->samplesNs : std::vector<double>();
}

/// Unfused samples; for a fused step, the sum of its replaced steps in each round.
std::vector<double> unfusedSamples(const VariantRecord& unfused, const VariantRecord* fused, const TimingsRow& row) {
  if (row.ofPlan) return row.ofPlan(unfused);
  const bool isWhole = fused && row.times.depth == 0;
  if (const StepRecord* whole = isWhole ? fused->find(row.times.label, row.times.phase) : nullptr)
    return sumPerRound(partsOf(*whole, unfused, *fused));
  const StepRecord* step = unfused.find(row.times.label, row.times.phase);
  return step ? step->samplesNs : std::vector<double>();
}

void addStrip(SamplePlot& plot, bool isFused, std::vector<double> ns) {
  if (ns.empty()) return;
  const double sum = std::accumulate(ns.begin(), ns.end(), 0.0);
  const SampleStats stats = summarize(ns);
  plot.strips.push_back({.plan = isFused ? translated("Fused") : translated("Unfused"),
                         .isFused = isFused,
                         .ns = std::move(ns),
                         .stats = stats,
                         .meanNs = sum / static_cast<double>(stats.count)});
}

/// From the first to the last sample that is not far from the others, in nanoseconds.
LinearRange rangeOf(const SampleStrip& strip) {
  const double reach = kFar * (strip.stats.percentile95 - strip.stats.percentile5);
  return {.low = std::max(strip.stats.minimum, strip.stats.percentile5 - reach),
          .high = std::min(*std::ranges::max_element(strip.ns), strip.stats.percentile95 + reach)};
}

}  // namespace

void chooseAxis(SamplePlot& plot) {
  LinearRange all = rangeOf(plot.strips.front());
  for (const SampleStrip& strip : plot.strips) {
    const LinearRange range = rangeOf(strip);
    all = {.low = std::min(all.low, range.low), .high = std::max(all.high, range.high)};
  }
  // Equal samples have an axis, too.
  const double width = all.high > all.low ? all.high - all.low : std::max(all.high, 1.0);
  plot.unit = timeUnitFor(all.high);
  plot.axis = {.low = plot.inUnit(all.low - kRoomAround * width), .high = plot.inUnit(all.high + kRoomAround * width)};
}

QString SamplePlot::timeText(double ns) const {
  return QStringLiteral("%1 %2").arg(formatColumnTime(ns, unit.size), unitText(unit));
}

SamplePlot samplePlot(const RunRecord& record, const TimingsRow& row) {
  SamplePlot plot{.title = toQt(row.times.label)};
  if (row.times.isView) return plot;
  if (!row.times.phase.empty()) plot.title += QStringLiteral(" · ") + toQt(row.times.phase);
  const VariantRecord* unfused = record.variant("unfused");
  const VariantRecord* fused = record.variant("fused");
  if (unfused) addStrip(plot, false, unfusedSamples(*unfused, fused, row));
  if (fused) addStrip(plot, true, fusedSamples(*fused, row));
  if (!plot.strips.empty()) chooseAxis(plot);
  return plot;
}

QString roundText(const SamplePlot& plot, const SampleStrip& strip, std::size_t round) {
  return translated("%1: round %2 of %3, %4")
      .arg(strip.plan)
      .arg(round + 1)
      .arg(strip.ns.size())
      .arg(plot.timeText(strip.ns[round]));
}

QString wordsOf(const SamplePlot& plot, const SampleStrip& strip) {
  const SampleStats& stats = strip.stats;
  return translated("%1: median %2, mean %3, quartiles %4 to %5, P5 to P95 %6 to %7, %8")
      .arg(strip.plan, plot.timeText(stats.median), plot.timeText(strip.meanNs), plot.timeText(stats.lowerQuartile),
           plot.timeText(stats.upperQuartile), plot.timeText(stats.percentile5), plot.timeText(stats.percentile95),
           counted(stats.count, translated("round"), translated("rounds")));
}

}  // namespace fuseline::ui
