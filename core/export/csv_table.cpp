// Writes the steps of a run as comma-separated values.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/csv_table.h"

#include "core/profile/roofline.h"
#include "core/profile/stats.h"
#include "core/support/csv.h"

#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

constexpr std::string_view kHead =
    "variant,pass,step,rule,kernel,ops,writes,rounds,median_ns,lower_quartile_ns,upper_quartile_ns,minimum_ns,flops,"
    "bytes,flops_per_byte,gb_per_s,gflop_per_s,least_ns,times_from_roofline,bound,percentile5_ns,percentile95_ns\r\n";

std::string times(const std::vector<double>& samplesNs) {
  if (samplesNs.empty()) return "0,,,,";
  const SampleStats stats = summarize(samplesNs);
  return fmt::format("{},{},{},{},{}", stats.count, stats.median, stats.lowerQuartile, stats.upperQuartile,
                     stats.minimum);
}

/// Empty where it is not known: GB are 1e9 bytes.
std::string efficiency(const Efficiency& made) {
  const auto known = [](double value) { return value > 0.0 ? fmt::format("{:.6g}", value) : ""; };
  return fmt::format("{},{},{},{},{},{}", known(made.intensity()), known(made.gbps()), known(made.gflops()),
                     known(made.leastNs), known(made.timesFromRoofline()), made.boundName());
}

std::string percentiles(const std::vector<double>& samplesNs) {
  if (samplesNs.empty()) return ",";
  const SampleStats stats = summarize(samplesNs);
  return fmt::format("{},{}", stats.percentile5, stats.percentile95);
}

std::string line(const VariantRecord& variant, const StepRecord& step, const Roofline& roofline) {
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}\r\n", csvField(variant.name), csvField(step.phase),
                     csvField(step.name), csvField(step.rule), csvField(step.kernel),
                     csvField(fmt::format("{}", fmt::join(step.ops, " "))), csvField(step.writes),
                     times(step.samplesNs), step.flops, step.bytes, efficiency(roofline.of({&step})),
                     percentiles(step.samplesNs));
}

std::string endToEnd(const VariantRecord& variant) {
  return fmt::format("{},,end to end,,,,,{},,,,,,,,,{}\r\n", csvField(variant.name), times(variant.endToEndNs),
                     percentiles(variant.endToEndNs));
}

}  // namespace

Result<std::string> csvTable(const RunRecord& record) {
  std::string text(kHead);
  for (const VariantRecord& variant : record.variants) {
    const Roofline roofline(record, variant);
    for (const StepRecord& step : variant.steps)
      if (!step.isView) text += line(variant, step, roofline);
    text += endToEnd(variant);
  }
  return text;
}

}  // namespace fuseline
