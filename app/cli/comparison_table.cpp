// Cells, the table of two runs, and what gates say of it.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/comparison_table.h"

#include "app/cli/stat_cells.h"
#include "core/support/text.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {

Json toJson(const SampleStats& stats) {
  if (stats.count == 0) return nullptr;
  return {{"median", stats.median}, {"spreadPercent", stats.spreadPercent()}, {"samples", stats.count}};
}

Json toJson(const MetricChange& metric) {
  return {{"name", metric.name},
          {"phase", metric.phase},
          {"unit", metric.unit},
          {"base", toJson(metric.base)},
          {"new", toJson(metric.next)},
          {"change", metric.isInBoth() ? Json(metric.change.median) : Json()},
          {"changeLow", metric.isInBoth() ? Json(metric.change.low) : Json()},
          {"changeHigh", metric.isInBoth() ? Json(metric.change.high) : Json()},
          {"isSignificant", metric.isInBoth() && metric.change.isSignificant()}};
}

Json toJson(const RunComparison::Difference& difference) {
  return {{"what", difference.what}, {"base", difference.base}, {"new", difference.next}};
}

template <class T>
Json listOf(const std::vector<T>& items) {
  Json list = Json::array();
  for (const T& item : items) list.push_back(toJson(item));
  return list;
}

class ComparisonTable {
 public:
  explicit ComparisonTable(const RunComparison& comparison)
      : m_comparison(comparison), m_time(timeUnitOf(comparison)) {}

  std::string text(bool hasColour) {
    m_table.addHeading(fmt::format("from end to end, {}", m_comparison.variant));
    std::ranges::for_each(m_comparison.totals, [this](const MetricChange& total) { add(total); });
    m_table.addHeading(fmt::format("steps of the {} plan", m_comparison.variant));
    std::ranges::for_each(m_comparison.steps, [this](const MetricChange& step) { add(step); });
    return m_table.toString(hasColour);
  }

 private:
  void add(const MetricChange& metric) {
    m_table.addRow({labelOf(metric), metric.phase, valueCell(metric, metric.base, m_time), spreadCell(metric.base),
                    valueCell(metric, metric.next, m_time), spreadCell(metric.next), changeCell(metric)});
  }

  const RunComparison& m_comparison;
  ColumnUnit m_time;
  Table m_table{
      {{"", Align::Left}, {"pass", Align::Left}, {"base"}, {"± %"}, {"new"}, {"± %"}, {"change", Align::Right}}};
};

}  // namespace

Cell changeCell(const MetricChange& metric) {
  const std::optional<bool> isBetter = hasImproved(metric);
  if (!isBetter) return {changeText(metric), Style::Dim};
  return {changeText(metric), *isBetter ? Style::Good : Style::Bad};
}

ColumnUnit timeUnitOf(const RunComparison& comparison) {
  double longestNs = 0.0;
  for (const MetricChange& total : comparison.totals)
    if (total.unit == "ns") longestNs = std::max({longestNs, total.base.median, total.next.median});
  return timeUnitFor(longestNs);
}

Cell valueCell(const MetricChange& metric, const SampleStats& stats, const ColumnUnit& time) {
  if (stats.count == 0) return {};
  if (metric.unit == "ns") return fmt::format("{} {}", time.timeOf(stats), time.name);
  if (metric.unit == "bytes") return formatBytes(static_cast<std::int64_t>(stats.median));
  return metric.unit == "x" ? fmt::format("{:.3f}x", stats.median) : fmt::format("{:g}", stats.median);
}

Cell spreadCell(const SampleStats& stats) { return {stats.hasSpread() ? spreadText(stats) : "", Style::Dim}; }

std::string labelOf(const MetricChange& metric) { return "  " + (metric.name == "median" ? "time" : metric.name); }

std::string comparisonTable(const RunComparison& comparison, bool hasColour) {
  return ComparisonTable(comparison).text(hasColour);
}

std::string comparisonLegend(const RunComparison& comparison) {
  if (comparison.isPaired)
    return "Medians. Both took turns in the same rounds, and changes are of each round. ~ marks a change that could be "
           "chance.\n";
  return "Medians. ~ marks a change that could be chance within the runs. Both were measured at their own time: what "
         "changed on the machine in between looks like a change of the program. speedup is free of that.\n";
}

/// "2 steps new, 1 gone."; empty: none.
std::string newAndGoneText(const RunComparison& comparison, const std::string& against) {
  const auto isNew = [](const MetricChange& step) { return step.base.count == 0; };
  const auto isGone = [](const MetricChange& step) { return step.next.count == 0; };
  const auto numNew = std::ranges::count_if(comparison.steps, isNew);
  const auto numGone = std::ranges::count_if(comparison.steps, isGone);
  if (numNew + numGone == 0) return {};
  return fmt::format("{}{} step{} new, {} gone.\n", against, numNew, numNew == 1 ? "" : "s", numGone);
}

Json comparisonJson(const RunComparison& comparison) {
  return {{"variant", comparison.variant},
          {"isPaired", comparison.isPaired},
          {"differences", listOf(comparison.differences)},
          {"totals", listOf(comparison.totals)},
          {"steps", listOf(comparison.steps)}};
}

Result<std::vector<Gate>> parseGates(const std::vector<std::string>& texts) {
  std::vector<Gate> gates;
  for (const std::string& text : texts) {
    Result<Gate> gate = parseGate(text);
    if (!gate) return gate.error();
    gates.push_back(std::move(*gate));
  }
  return gates;
}

Result<std::vector<GateReport>> checkGates(const std::vector<Gate>& gates, const RunComparison& comparison) {
  std::vector<GateResult> results;
  for (const Gate& gate : gates) {
    Result<GateResult> result = check(gate, comparison);
    if (!result) return result.error();
    results.push_back(std::move(*result));
  }
  return reportsOf(results);
}

}  // namespace fuseline::cli
