// Cells, the table of two runs, and what gates say of it.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/comparison_table.h"

#include "app/cli/stat_cells.h"
#include "core/support/field_table.h"
#include "core/support/text.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

namespace {

Field<MetricChange> samplesField(std::string key, SampleStats MetricChange::*member) {
  static const FieldTable<SampleStats> table(
      {field("median", &SampleStats::median, "Median, in the unit of the metric."),
       derived<SampleStats>("spreadPercent", &SampleStats::spreadPercent, "Half the interquartile range / median."),
       field("samples", &SampleStats::count, "Number of rounds.")});
  return {std::move(key), schema::orNull(table.schema()), [member](const MetricChange& metric) {
            return (metric.*member).count == 0 ? Json() : table.toJson(metric.*member);
          }};
}

Field<MetricChange> changeField(std::string key, double RatioStats::*member, std::string_view help) {
  return {std::move(key), schema::orNull(schema::number(help)),
          [member](const MetricChange& metric) { return metric.isInBoth() ? Json(metric.change.*member) : Json(); }};
}

}  // namespace

static const FieldTable<MetricChange>& fieldsOf(const MetricChange*) {
  using Metric = MetricChange;
  static const FieldTable<Metric> table(
      {field("name", &Metric::name, "Metric of --fail-if; for a step, its name."),
       field("phase", &Metric::phase, "Phase of a step; else empty."),
       field("unit", &Metric::unit).oneOf({"ns", "bytes", "x", ""}), samplesField("base", &Metric::base),
       samplesField("new", &Metric::next),
       changeField("change", &RatioStats::median, "New / base; null: one of them is missing."),
       changeField("changeLow", &RatioStats::low, "Lower bound of the 95 % interval."),
       changeField("changeHigh", &RatioStats::high, "Upper bound of the 95 % interval."),
       derived<Metric>(
           "isSignificant", [](const Metric& metric) { return metric.isInBoth() && metric.change.isSignificant(); },
           "The change is statistically significant within the runs.")});
  return table;
}

static const FieldTable<RunComparison::Difference>& fieldsOf(const RunComparison::Difference*) {
  using Difference = RunComparison::Difference;
  static const FieldTable<Difference> table(
      {field("what", &Difference::what, "Setting, or property of the environment."),
       field("base", &Difference::base, "Value; empty: unknown."),
       field("new", &Difference::next, "Value; empty: unknown.")});
  return table;
}

static const FieldTable<RunComparison>& fieldsOf(const RunComparison*) {
  static const FieldTable<RunComparison> table(
      {field("variant", &RunComparison::variant).oneOf({"unfused", "fused"}),
       field("isPaired", &RunComparison::isPaired,
             "The runs were interleaved; changes are computed within each round."),
       field("differences", &RunComparison::differences), field("totals", &RunComparison::totals),
       field("steps", &RunComparison::steps)});
  return table;
}

}  // namespace fuseline

namespace fuseline::cli {

namespace {

class ComparisonTable {
 public:
  explicit ComparisonTable(const RunComparison& comparison)
      : m_comparison(comparison), m_time(timeUnitOf(comparison)) {}

  std::string text(bool hasColour) {
    m_table.addHeading(fmt::format("end to end, {}", m_comparison.variant));
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
    return "Medians of interleaved rounds; changes are computed within each round. ~ marks a change that is not "
           "significant.\n";
  return "Medians. ~ marks a change that is not significant within the runs. The runs were not interleaved, so drift "
         "of the machine between them is included, except in speedup.\n";
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

Json comparisonJson(const RunComparison& comparison) { return fieldJson(comparison); }

schema::Fields comparisonFields() {
  schema::Fields fields;
  for (const Field<RunComparison>& each : fieldsOf(static_cast<const RunComparison*>(nullptr)).fields())
    fields.emplace_back(each.key, each.schema);
  return fields;
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

/// Table for two runs.
}  // namespace fuseline::cli
