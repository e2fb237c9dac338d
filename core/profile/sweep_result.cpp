// Summarizes a sweep.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/sweep_result.h"

#include "core/profile/stats_json.h"
#include "core/support/csv.h"
#include "core/support/output_schema.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

namespace {

std::vector<std::string> coordinatesOf(const SweepPoint& point, const ShapeSweep& sweep) {
  std::vector<std::string> cells;
  for (const auto& [symbol, size] : point.symbols) cells.push_back(fmt::format("{}", size));
  if (!sweep.recipes.empty()) cells.push_back(point.recipe);
  return cells;
}

Json figuresJson(const SweepRow& row) {
  const SweepFigures& figures = row.figures;
  return {{"rounds", figures.fused.count},
          {"unfusedMedianNs", figures.unfused.median},
          {"unfusedSpreadPercent", figures.unfused.spreadPercent()},
          {"fusedMedianNs", figures.fused.median},
          {"fusedSpreadPercent", figures.fused.spreadPercent()},
          {"speedup", ratioJson(figures.speedup)},
          {"isSignificant", figures.speedup.isSignificant()},
          {"unfusedPeakBytes", row.unfusedPlan().peakBytes},
          {"fusedPeakBytes", row.fusedPlan().peakBytes},
          {"unfusedLaunches", row.unfusedPlan().launches},
          {"fusedLaunches", row.fusedPlan().launches}};
}

Json symbolsJson(const SweepPoint& point) {
  Json symbols = Json::object();
  for (const auto& [symbol, size] : point.symbols) symbols[symbol] = size;
  return symbols;
}

Json toJson(const SweepRow& row) {
  return {{"symbols", symbolsJson(row.point)},
          {"recipe", row.point.recipe},
          {"reason", row.reason},
          {"measured", row.isMeasured() ? figuresJson(row) : Json()}};
}

Json toJson(const SweepLine& line, const std::string& symbol) {
  const bool hasSize = line.breakEven.kind == BreakEven::Kind::From || line.breakEven.kind == BreakEven::Kind::UpTo;
  return {{"symbol", symbol},
          {"symbols", symbolsJson(line.fixed)},
          {"recipe", line.fixed.recipe},
          {"kind", nameOf(line.breakEven.kind)},
          {"size", hasSize ? Json(line.breakEven.size) : Json()},
          {"faster", line.breakEven.faster},
          {"slower", line.breakEven.slower},
          {"undecided", line.breakEven.undecided},
          {"sentence", line.sentence(symbol)}};
}

std::vector<std::string> csvOf(const SweepRow& row, const ShapeSweep& sweep) {
  std::vector<std::string> fields = coordinatesOf(row.point, sweep);
  if (!row.isMeasured()) {
    fields.insert(fields.end(), 14, "");
    fields.push_back(row.reason);
    return fields;
  }
  const SweepFigures& figures = row.figures;
  fields.push_back(fmt::format("{}", figures.fused.count));
  for (const SampleStats* stats : {&figures.unfused, &figures.fused})
    for (const double ns : {stats->median, stats->lowerQuartile, stats->upperQuartile})
      fields.push_back(fmt::format("{}", ns));
  for (const double ratio : {figures.speedup.median, figures.speedup.low, figures.speedup.high})
    fields.push_back(fmt::format("{}", ratio));
  for (const std::int64_t count :
       {row.unfusedPlan().peakBytes, row.fusedPlan().peakBytes, row.unfusedPlan().launches, row.fusedPlan().launches})
    fields.push_back(fmt::format("{}", count));
  fields.emplace_back();
  return fields;
}

/// The row of the first recipe at the same sizes; nullptr: it was not measured. Recipes run slowest.
const SweepRow* firstAt(const SweepResult& result, const SweepPoint& point) {
  const auto isThere = [&](const SweepRow& row) { return row.point.symbols == point.symbols; };
  const auto first = std::ranges::find_if(result.rows, isThere);
  return first == result.rows.end() || !first->isMeasured() ? nullptr : &*first;
}

}  // namespace

SweepRow measuredRow(SweepPoint point, RunRecord record) {
  SweepRow row{.point = std::move(point), .record = std::move(record)};
  const std::vector<double>& unfused = row.unfusedPlan().endToEndNs;
  const std::vector<double>& fused = row.fusedPlan().endToEndNs;
  row.figures = {.unfused = summarize(unfused), .fused = summarize(fused), .speedup = compareRounds(unfused, fused)};
  return row;
}

void addRow(SweepResult& result, SweepRow row) {
  if (row.isMeasured())
    if (const SweepRow* const first = firstAt(result, row.point))
      row.figures.overFirstRecipe = compareApart(first->fusedPlan().endToEndNs, row.fusedPlan().endToEndNs);
  result.rows.push_back(std::move(row));
}

std::string SweepLine::sentence(const std::string& symbol) const {
  const std::string where = fixed.name();
  return (where.empty() ? "" : where + ": ") + sentenceOf(breakEven, symbol);
}

std::vector<SweepLine> linesOf(const SweepResult& result) {
  const std::size_t length = result.sweep.axes.front().sizes.size();
  std::vector<SweepLine> lines;
  for (std::size_t begin = 0; begin < result.rows.size(); begin += length) {
    std::vector<SizedGain> gains;
    for (std::size_t i = begin; i < std::min(begin + length, result.rows.size()); ++i)
      if (const SweepRow& row = result.rows[i]; row.isMeasured())
        gains.push_back({row.point.symbols.front().second, gainOf(row.figures.speedup)});
    SweepPoint fixed = result.rows[begin].point;
    fixed.symbols.erase(fixed.symbols.begin());
    lines.push_back({.fixed = std::move(fixed), .breakEven = breakEvenOf(std::move(gains))});
  }
  return lines;
}

std::vector<std::string> appliedRules(const VariantRecord& plan) {
  std::vector<std::string> rules;
  for (const StepRecord& step : plan.steps)
    if (!step.rule.empty()) rules.push_back(step.rule);
  return rules;
}

std::string sweepCsv(const SweepResult& result) {
  std::vector<std::string> head;
  for (const SweepAxis& axis : result.sweep.axes) head.push_back(axis.symbol);
  if (!result.sweep.recipes.empty()) head.emplace_back("recipe");
  for (const char* column :
       {"rounds", "unfused_median_ns", "unfused_lower_quartile_ns", "unfused_upper_quartile_ns", "fused_median_ns",
        "fused_lower_quartile_ns", "fused_upper_quartile_ns", "speedup", "speedup_low", "speedup_high",
        "unfused_peak_bytes", "fused_peak_bytes", "unfused_launches", "fused_launches", "reason"})
    head.emplace_back(column);
  std::string text = csvLine(head);
  for (const SweepRow& row : result.rows) text += csvLine(csvOf(row, result.sweep));
  return text;
}

Json toJson(const SweepResult& result) {
  Json rows = Json::array();
  for (const SweepRow& row : result.rows) rows.push_back(toJson(row));
  Json breakEvens = Json::array();
  for (const SweepLine& line : linesOf(result)) breakEvens.push_back(toJson(line, result.sweep.axes.front().symbol));
  return {{"pipeline", result.pipelineName},
          {"device", result.deviceName},
          {"rows", std::move(rows)},
          {"breakEvens", std::move(breakEvens)}};
}

Json sweepSchema() {
  const Json symbols = schema::mapOf({{"type", "integer"}});
  const Json measured =
      schema::object({{"rounds", schema::integer("Number of complete rounds.")},
                      {"unfusedMedianNs", schema::number("Median end-to-end time.")},
                      {"unfusedSpreadPercent", schema::number("Half the interquartile range / median.")},
                      {"fusedMedianNs", schema::number("Median end-to-end time.")},
                      {"fusedSpreadPercent", schema::number("Half the interquartile range / median.")},
                      {"speedup", ratioSchema()},
                      {"isSignificant", schema::flag("Whether the 95 % interval excludes 1.")},
                      {"unfusedPeakBytes", schema::integer("Peak memory of the plan.")},
                      {"fusedPeakBytes", schema::integer("Peak memory of the plan.")},
                      {"unfusedLaunches", schema::integer("Launches on the device in one run, unfused.")},
                      {"fusedLaunches", schema::integer("Launches on the device in one run, fused.")}});
  const Json row = schema::object({{"symbols", symbols},
                                   {"recipe", schema::text("Recipe, if recipes are an axis; else empty.")},
                                   {"reason", schema::text("Reason why it was not measured; empty: it was.")},
                                   {"measured", schema::orNull(measured)}});
  const Json breakEven = schema::object(
      {{"symbol", schema::text("Symbol of the first axis.")},
       {"symbols", symbols},
       {"recipe", schema::text("Recipe, if recipes are an axis; else empty.")},
       {"kind", schema::choice({"atAllSizes", "never", "from", "upTo", "undecided", "mixed", "notMeasured"})},
       {"size", schema::orNull(schema::integer("Size, for the kinds from and upTo."))},
       {"faster", schema::list(schema::integer("Size at which fusing is faster or slower."))},
       {"slower", schema::list(schema::integer("Size at which fusing is faster or slower."))},
       {"undecided", schema::list(schema::integer("A size at which the ratio is not statistically significant."))},
       {"sentence", schema::text("The result as a sentence.")}});
  return schema::object({{"pipeline", schema::text("Name of the pipeline.")},
                         {"device", schema::text("Name of the device.")},
                         {"rows", schema::list(row)},
                         {"breakEvens", schema::list(breakEven)}});
}

}  // namespace fuseline
