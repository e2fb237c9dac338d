// fuseline compare: two runs side by side, and gates for continuous integration.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/annotations.h"
#include "app/cli/gate_report.h"
#include "app/cli/stat_cells.h"
#include "app/cli/table.h"
#include "app/cli/verbs.h"
#include "core/profile/run_comparison.h"
#include "core/profile/run_file.h"
#include "core/support/text.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {

struct CompareOptions {
  std::string base;
  std::string next;
  std::vector<std::string> gates;
  bool asJson = false;
  bool annotates = false;
};

Result<std::vector<Gate>> gatesOf(const CompareOptions& options) {
  std::vector<Gate> gates;
  for (const std::string& text : options.gates) {
    Result<Gate> gate = parseGate(text);
    if (!gate) return gate.error();
    gates.push_back(std::move(*gate));
  }
  return gates;
}

Result<std::vector<GateResult>> checkAll(const std::vector<Gate>& gates, const RunComparison& comparison) {
  std::vector<GateResult> results;
  for (const Gate& gate : gates) {
    Result<GateResult> result = check(gate, comparison);
    if (!result) return result.error();
    results.push_back(std::move(*result));
  }
  return results;
}

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

Cell changeCell(const MetricChange& metric) {
  const std::optional<bool> isBetter = hasImproved(metric);
  if (!isBetter) return {changeText(metric), Style::Dim};
  return {changeText(metric), *isBetter ? Style::Good : Style::Bad};
}

class CompareTable {
 public:
  CompareTable(const RunComparison& comparison, const Context& context) : m_comparison(comparison), m_context(context) {
    double longestNs = 0.0;
    for (const MetricChange& total : comparison.totals)
      if (total.unit == "ns") longestNs = std::max({longestNs, total.base.median, total.next.median});
    m_time = timeUnitFor(longestNs);
  }

  std::string text() {
    m_table.addHeading(fmt::format("from end to end, {}", m_comparison.variant));
    for (const MetricChange& total : m_comparison.totals) add(total, total.name == "median" ? "time" : total.name);
    m_table.addHeading(fmt::format("steps of the {} plan", m_comparison.variant));
    for (const MetricChange& step : m_comparison.steps) add(step, step.name);
    return m_table.toString(m_context.hasColour);
  }

 private:
  void add(const MetricChange& metric, const std::string& label) {
    const auto value = [&](const SampleStats& stats) { return stats.count > 0 ? valueText(metric, stats) : ""; };
    const auto spread = [&](const SampleStats& stats) {
      return Cell(stats.hasSpread() ? spreadText(stats) : "", Style::Dim);
    };
    m_table.addRow({"  " + label, metric.phase, value(metric.base), spread(metric.base), value(metric.next),
                    spread(metric.next), changeCell(metric)});
  }

  std::string valueText(const MetricChange& metric, const SampleStats& stats) const {
    if (metric.unit == "ns") return fmt::format("{:.3f} {}", stats.median / m_time.size, m_time.name);
    if (metric.unit == "bytes") return formatBytes(static_cast<std::int64_t>(stats.median));
    return metric.unit == "x" ? fmt::format("{:.3f}x", stats.median) : fmt::format("{:g}", stats.median);
  }

  const RunComparison& m_comparison;
  const Context& m_context;
  ColumnUnit m_time{};
  Table m_table{
      {{"", Align::Left}, {"pass", Align::Left}, {"base"}, {"± %"}, {"new"}, {"± %"}, {"change", Align::Right}}};
};

void print(const RunComparison& comparison, const std::vector<GateReport>& gates, Context& context) {
  for (const RunComparison::Difference& difference : comparison.differences)
    context.out << fmt::format("{}: {} -> {}\n", difference.what, difference.base.empty() ? "-" : difference.base,
                               difference.next.empty() ? "-" : difference.next);
  if (!comparison.differences.empty()) context.out << "\n";
  context.out << CompareTable(comparison, context).text()
              << "\nMedians. ~ marks a change that could be chance within the runs. Both were measured at their own "
                 "time: what \nchanged on the machine in between looks like a change of the program. speedup is free "
                 "of that.\n"
              << toString(gates);
}

/// Of the gates that failed.
std::string annotationsOf(const std::vector<GateReport>& gates, const std::string& file) {
  std::string text;
  for (const GateReport& gate : gates)
    if (!gate.isMet)
      text += githubAnnotation({.file = file, .message = fmt::format("{}: {}.", gate.gate, gate.sentence)});
  return text;
}

Result<int> compare(const CompareOptions& options, Context& context) {
  const Result<std::vector<Gate>> gates = gatesOf(options);
  if (!gates) return gates.error();
  const Result<RunRecord> base = loadRunRecord(options.base);
  if (!base) return base.error();
  const Result<RunRecord> next = loadRunRecord(options.next);
  if (!next) return next.error();
  const Result<RunComparison> comparison = compareRuns(*base, *next);
  if (!comparison) return comparison.error();
  const Result<std::vector<GateResult>> results = checkAll(*gates, *comparison);
  if (!results) return results.error();
  const std::vector<GateReport> reports = reportsOf(*results);
  if (options.asJson)
    printJson(context, {{"variant", comparison->variant},
                        {"differences", listOf(comparison->differences)},
                        {"totals", listOf(comparison->totals)},
                        {"steps", listOf(comparison->steps)},
                        {"gates", toJson(reports)}});
  else
    print(*comparison, reports, context);
  if (options.annotates) context.out << annotationsOf(reports, options.next);
  return exitCodeOf(reports);
}

}  // namespace

void addCompareVerb(CLI::App& app, Context& context) {
  const auto options = std::make_shared<CompareOptions>();
  CLI::App* verb =
      addVerb(app, context, "compare", "Two runs side by side; with --fail-if a gate: exit code 5", options, compare);
  verb->add_option("BASE", options->base, "The run that the other is compared with")
      ->type_name("BASE.fuserun")
      ->required();
  verb->add_option("NEW", options->next, "The other run")->type_name("NEW.fuserun")->required();
  verb->add_option(
          "--fail-if", options->gates,
          "Such as \"median>+5%\" or \"speedup<-5%\"; of median, unfused, speedup, peak, saved, launches, step. "
          "A change that could be chance does not fail")
      ->type_name("GATE");
  verb->add_flag("--json", options->asJson, "Machine-readable output");
  addAnnotateOption(*verb, options->annotates);
}

}  // namespace fuseline::cli
