// Lays out a sweep.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/sweep_result.h"

#include "app/cli/stat_cells.h"
#include "app/cli/table.h"
#include "core/support/csv.h"
#include "core/support/text.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline::cli {

namespace {

/// What a measured row says.
struct Figures {
  SampleStats unfused, fused;
  RatioStats speedup;
  const VariantRecord* unfusedPlan;
  const VariantRecord* fusedPlan;
};

Figures figuresOf(const SweepRow& row) {
  const VariantRecord* const unfused = row.record->variant("unfused");
  const VariantRecord* const fused = row.record->variant("fused");
  return {.unfused = summarize(unfused->endToEndNs),
          .fused = summarize(fused->endToEndNs),
          .speedup = compareRounds(unfused->endToEndNs, fused->endToEndNs),
          .unfusedPlan = unfused,
          .fusedPlan = fused};
}

/// Points that differ in the size along the first axis only, and where fusing pays among them.
struct Line {
  SweepPoint fixed;  // without the first axis
  BreakEven breakEven;

  /// "MXFP8BlockScaling, H = 4096: fused is faster from M = 512 on"
  std::string sentence(const std::string& symbol) const {
    const std::string where = fixed.name();
    return (where.empty() ? "" : where + ": ") + sentenceOf(breakEven, symbol);
  }
};

std::vector<Line> linesOf(const SweepResult& result) {
  const std::size_t length = result.sweep.axes.front().sizes.size();
  std::vector<Line> lines;
  for (std::size_t begin = 0; begin < result.rows.size(); begin += length) {
    std::vector<SizedGain> gains;
    for (std::size_t i = begin; i < std::min(begin + length, result.rows.size()); ++i)
      if (const SweepRow& row = result.rows[i]; row.isMeasured())
        gains.push_back({row.point.symbols.front().second, gainOf(figuresOf(row).speedup)});
    SweepPoint fixed = result.rows[begin].point;
    fixed.symbols.erase(fixed.symbols.begin());
    lines.push_back({.fixed = std::move(fixed), .breakEven = breakEvenOf(std::move(gains))});
  }
  return lines;
}

/// So that the shortest of them still has digits.
ColumnUnit timeUnitOf(const SweepResult& result) {
  double shortestNs = 0.0;
  for (const SweepRow& row : result.rows)
    if (row.isMeasured()) {
      const Figures figures = figuresOf(row);
      const double ns = std::min(figures.unfused.median, figures.fused.median);
      shortestNs = shortestNs == 0.0 ? ns : std::min(shortestNs, ns);
    }
  return timeUnitFor(shortestNs);
}

std::vector<std::string> coordinatesOf(const SweepPoint& point) {
  std::vector<std::string> cells;
  for (const auto& [symbol, size] : point.symbols) cells.push_back(fmt::format("{}", size));
  if (!point.recipe.empty()) cells.push_back(point.recipe);
  return cells;
}

std::vector<Cell> cellsOf(const SweepRow& row, const ColumnUnit& time) {
  const std::vector<std::string> coordinates = coordinatesOf(row.point);
  std::vector<Cell> cells(coordinates.begin(), coordinates.end());
  if (!row.isMeasured()) {
    cells.emplace_back("not measured", Style::Dim);
    return cells;
  }
  const Figures figures = figuresOf(row);
  const auto timeCell = [&](const SampleStats& stats) { return Cell(fmt::format("{:.3f}", stats.median / time.size)); };
  for (Cell cell : {timeCell(figures.unfused), Cell(spreadText(figures.unfused), Style::Dim), timeCell(figures.fused),
                    Cell(spreadText(figures.fused), Style::Dim),
                    Cell(fmt::format("{}", figures.fused.count), Style::Dim), speedupCell(figures.speedup),
                    Cell(formatBytes(figures.unfusedPlan->peakBytes)), Cell(formatBytes(figures.fusedPlan->peakBytes)),
                    Cell(fmt::format("{} -> {}", figures.unfusedPlan->launches, figures.fusedPlan->launches))})
    cells.push_back(std::move(cell));
  return cells;
}

std::vector<Column> columnsOf(const ShapeSweep& sweep, const ColumnUnit& time) {
  std::vector<Column> columns;
  for (const SweepAxis& axis : sweep.axes) columns.push_back({axis.symbol});
  if (!sweep.recipes.empty()) columns.push_back({"recipe", Align::Left});
  for (const std::string& header :
       {fmt::format("unfused {}", time.name), std::string("± %"), fmt::format("fused {}", time.name),
        std::string("± %"), std::string("n"), std::string("speed-up"), std::string("peak"), std::string("fused peak"),
        std::string("launches")})
    columns.push_back({header});
  return columns;
}

std::string reasonsOf(const SweepResult& result) {
  std::string text;
  for (const SweepRow& row : result.rows)
    if (!row.isMeasured()) text += wrappedLines(fmt::format("{}: {}\n", row.point.name(), row.reason), 2);
  return text;
}

Json figuresJson(const SweepRow& row) {
  const Figures figures = figuresOf(row);
  return {{"rounds", figures.fused.count},
          {"unfusedMedianNs", figures.unfused.median},
          {"unfusedSpreadPercent", figures.unfused.spreadPercent()},
          {"fusedMedianNs", figures.fused.median},
          {"fusedSpreadPercent", figures.fused.spreadPercent()},
          {"speedup", ratioJson(figures.speedup)},
          {"isSignificant", figures.speedup.isSignificant()},
          {"unfusedPeakBytes", figures.unfusedPlan->peakBytes},
          {"fusedPeakBytes", figures.fusedPlan->peakBytes},
          {"unfusedLaunches", figures.unfusedPlan->launches},
          {"fusedLaunches", figures.fusedPlan->launches}};
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

Json toJson(const Line& line, const std::string& symbol) {
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

std::vector<std::string> csvOf(const SweepRow& row) {
  std::vector<std::string> fields = coordinatesOf(row.point);
  if (!row.isMeasured()) {
    fields.insert(fields.end(), 14, "");
    fields.push_back(row.reason);
    return fields;
  }
  const Figures figures = figuresOf(row);
  fields.push_back(fmt::format("{}", figures.fused.count));
  for (const SampleStats* stats : {&figures.unfused, &figures.fused})
    for (const double ns : {stats->median, stats->lowerQuartile, stats->upperQuartile})
      fields.push_back(fmt::format("{}", ns));
  for (const double ratio : {figures.speedup.median, figures.speedup.low, figures.speedup.high})
    fields.push_back(fmt::format("{}", ratio));
  for (const std::int64_t count : {figures.unfusedPlan->peakBytes, figures.fusedPlan->peakBytes,
                                   figures.unfusedPlan->launches, figures.fusedPlan->launches})
    fields.push_back(fmt::format("{}", count));
  fields.emplace_back();
  return fields;
}

}  // namespace

std::string sweepTable(const SweepResult& result, bool hasColour) {
  const ColumnUnit time = timeUnitOf(result);
  Table table(columnsOf(result.sweep, time));
  for (const SweepRow& row : result.rows) table.addRow(cellsOf(row, time));
  std::string text = fmt::format("{}  on {}\n\n{}\n", styled(result.pipelineName, Style::Bold, hasColour),
                                 result.deviceName, table.toString(hasColour));
  for (const Line& line : linesOf(result))
    text += wrappedLines(line.sentence(result.sweep.axes.front().symbol) + ".\n", 2);
  const std::string reasons = reasonsOf(result);
  if (!reasons.empty()) text += "\n" + reasons;
  return text + styled(
                    "\nMedians of rounds that interleave both plans; ± is half the interquartile range; ~ marks a "
                    "speed-up that could\nbe chance. peak: the memory of the unfused plan. launches: of both plans.\n",
                    Style::Dim, hasColour);
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
  for (const SweepRow& row : result.rows) text += csvLine(csvOf(row));
  return text;
}

Json toJson(const SweepResult& result) {
  Json rows = Json::array();
  for (const SweepRow& row : result.rows) rows.push_back(toJson(row));
  Json breakEvens = Json::array();
  for (const Line& line : linesOf(result)) breakEvens.push_back(toJson(line, result.sweep.axes.front().symbol));
  return {{"pipeline", result.pipelineName},
          {"device", result.deviceName},
          {"rows", std::move(rows)},
          {"breakEvens", std::move(breakEvens)}};
}

}  // namespace fuseline::cli
