// Writes a comparison of runs as a table.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/html_comparison.h"

#include "core/profile/run_comparison.h"
#include "core/support/text.h"

#include <fmt/format.h>

namespace fuseline {

namespace {

std::string valueText(const MetricChange& metric, const SampleStats& stats) {
  if (stats.count == 0) return {};
  if (metric.unit == "ns") return formatDuration(stats.median);
  if (metric.unit == "bytes") return formatBytes(static_cast<std::int64_t>(stats.median));
  return metric.unit == "x" ? fmt::format("{:.3f}x", stats.median) : fmt::format("{:g}", stats.median);
}

Html changeCell(const MetricChange& metric) {
  const std::optional<bool> isBetter = hasImproved(metric);
  HtmlAttributes attributes = {{"class", !isBetter ? "number" : *isBetter ? "number good" : "number bad"}};
  if (metric.isInBoth())
    attributes.emplace_back("title", fmt::format("95 % interval of new over base: {:.3f} to {:.3f}", metric.change.low,
                                                 metric.change.high));
  return element("td", attributes, Html::text(changeText(metric)));
}

Html number(const std::string& text) { return element("td", {{"class", "number"}}, Html::text(text)); }

Html rowOf(const MetricChange& metric) {
  return element("tr", textElement("td", metric.name == "median" ? "end to end" : metric.name) +
                           textElement("td", metric.phase) + number(valueText(metric, metric.base)) +
                           number(valueText(metric, metric.next)) + changeCell(metric));
}

Html rowsOf(const std::vector<MetricChange>& metrics) {
  Html rows;
  for (const MetricChange& metric : metrics) rows += rowOf(metric);
  return element("tbody", rows);
}

Html differencesOf(const RunComparison& comparison) {
  Html items;
  const auto said = [](const std::string& value) { return value.empty() ? "-" : value; };
  for (const RunComparison::Difference& each : comparison.differences)
    items += textElement("li", fmt::format("{}: {} → {}", each.what, said(each.base), said(each.next)));
  return items.isEmpty() ? Html() : element("ul", items);
}

}  // namespace

Html comparisonOf(const NamedRun& base, const RunRecord& run) {
  const Html name =
      textElement("h3", base.name) + (base.record.note.empty() ? Html() : textElement("p", base.record.note));
  const Result<RunComparison> comparison = compareRuns(base.record, run);
  if (!comparison) return name + textElement("p", comparison.error().message);
  const Html head = element("tr",
                            "<th scope=\"col\">step</th><th scope=\"col\">pass</th>"
                            "<th scope=\"col\">base</th><th scope=\"col\">this run</th>"
                            "<th scope=\"col\">change</th>"_html);
  const Html table = element("thead", head) + rowsOf(comparison->totals) + rowsOf(comparison->steps);
  return name + differencesOf(*comparison) +
         textElement("p", fmt::format("Steps of the {} plan. ~ marks a change that is not significant within the runs. "
                                      "The runs were not interleaved.",
                                      comparison->variant)) +
         element("div", {{"class", "wide"}}, element("table", table));
}

}  // namespace fuseline
