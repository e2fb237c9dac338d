// Lays out a sweep.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/sweep_table.h"

#include "app/cli/stat_cells.h"
#include "app/cli/table.h"
#include "core/support/text.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {
namespace sweep_table_parts {

/// So that the shortest of them still has digits.
ColumnUnit timeUnitOf(const SweepResult& result) {
  double shortestNs = 0.0;
  for (const SweepRow& row : result.rows)
    if (row.isMeasured()) {
      const SweepFigures& figures = row.figures;
      const double ns = std::min(figures.unfused.median, figures.fused.median);
      shortestNs = shortestNs == 0.0 ? ns : std::min(shortestNs, ns);
    }
  return timeUnitFor(shortestNs);
}

std::vector<Cell> coordinateCells(const SweepPoint& point) {
  std::vector<Cell> cells;
  for (const auto& [symbol, size] : point.symbols) cells.emplace_back(fmt::format("{}", size));
  if (!point.recipe.empty()) cells.emplace_back(point.recipe);
  return cells;
}

std::vector<Cell> cellsOf(const SweepRow& row, const ColumnUnit& time) {
  std::vector<Cell> cells = coordinateCells(row.point);
  if (!row.isMeasured()) {
    cells.emplace_back("not measured", Style::Dim);
    return cells;
  }
  const SweepFigures& figures = row.figures;
  const auto timeCell = [&](const SampleStats& stats) { return Cell(fmt::format("{:.3f}", stats.median / time.size)); };
  for (Cell cell : {timeCell(figures.unfused), Cell(spreadText(figures.unfused), Style::Dim), timeCell(figures.fused),
                    Cell(spreadText(figures.fused), Style::Dim),
                    Cell(fmt::format("{}", figures.fused.count), Style::Dim), speedupCell(figures.speedup),
                    Cell(formatBytes(row.unfusedPlan().peakBytes)), Cell(formatBytes(row.fusedPlan().peakBytes)),
                    Cell(fmt::format("{} -> {}", row.unfusedPlan().launches, row.fusedPlan().launches))})
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

/// The row with the same sizes and the first number of ranks of the sweep; nullptr: it is this one, or not measured.
const SweepRow* firstRanksOf(const SweepRow& row, const SweepResult& result) {
  const auto axis = std::ranges::find(result.sweep.axes, kRanksAxis, &SweepAxis::symbol);
  if (axis == result.sweep.axes.end()) return nullptr;
  SweepPoint wanted = row.point;
  for (auto& [symbol, size] : wanted.symbols)
    if (symbol == kRanksAxis) size = axis->sizes.front();
  if (wanted.name() == row.point.name()) return nullptr;
  for (const SweepRow& other : result.rows)
    if (other.isMeasured() && other.point.name() == wanted.name()) return &other;
  return nullptr;
}

/// Whether more ranks pay, a line each.
std::string ranksText(const SweepResult& result) {
  std::string text;
  for (const SweepRow& row : result.rows) {
    const SweepRow* const first = row.isMeasured() ? firstRanksOf(row, result) : nullptr;
    if (!first) continue;
    text += fmt::format(
        "{}: the fused plan takes {:.3g} times as long as at {} ({} and {}, measured one after the other).\n",
        row.point.name(), row.figures.fused.median / first->figures.fused.median, first->point.name(),
        formatDuration(row.figures.fused.median), formatDuration(first->figures.fused.median));
    if (!row.communication.empty()) text += fmt::format("{}: {}\n", row.point.name(), row.communication);
  }
  return text;
}

}  // namespace sweep_table_parts
}  // namespace

std::string sweepTable(const SweepResult& result, bool hasColour) {
  using namespace sweep_table_parts;
  const ColumnUnit time = timeUnitOf(result);
  Table table(columnsOf(result.sweep, time));
  for (const SweepRow& row : result.rows) table.addRow(cellsOf(row, time));
  std::string text = fmt::format("{}  on {}\n\n{}\n", styled(result.pipelineName, Style::Bold, hasColour),
                                 result.deviceName, table.toString(hasColour));
  for (const SweepLine& line : linesOf(result))
    text += wrappedLines(line.sentence(result.sweep.axes.front().symbol) + ".\n", 2);
  text += wrappedLines(ranksText(result), 2);
  const std::string reasons = reasonsOf(result);
  if (!reasons.empty()) text += "\n" + reasons;
  return text + styled(
                    "\nMedians of interleaved rounds; ± is half the interquartile range; ~ marks a speed-up that is "
                    "not significant.\npeak: memory of the unfused plan. launches: of both plans.\n",
                    Style::Dim, hasColour);
}

}  // namespace fuseline::cli
