// Column widths, alignment and rules.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/table.h"

#include "core/support/visible_text.h"

#include <algorithm>
#include <numeric>

namespace fuseline::cli {

namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kNarrowest = 16;

std::string padded(const Cell& cell, std::size_t width, Align align, bool hasColour) {
  const std::string text = fitted(cell.text, width);
  const std::string space(width - displayWidth(text), ' ');
  const std::string shown = styled(text, cell.style, hasColour);
  return align == Align::Left ? shown + space : space + shown;
}

std::size_t totalWidth(const std::vector<std::size_t>& widths) {
  return std::accumulate(widths.begin(), widths.end(), kGap * (widths.size() - 1));
}

std::string withoutTrailingSpace(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

Table::Table(std::vector<Column> columns) : m_columns(std::move(columns)) {}

void Table::addRow(std::vector<Cell> cells) {
  for (Cell& cell : cells) cell.text = visibleText(cell.text);
  m_rows.push_back({.cells = std::move(cells)});
}

void Table::addHeading(std::string_view text) {
  m_rows.push_back({.kind = Row::Kind::Heading, .cells = {{visibleText(text), Style::Bold}}});
}

void Table::addRule() { m_rows.push_back({.kind = Row::Kind::Rule}); }

void Table::dropEmptyColumns() {
  for (std::size_t column = m_columns.size() - 1; column > 0; --column) {
    const auto hasText = [column](const Row& row) {
      return column < row.cells.size() && !row.cells[column].text.empty();
    };
    if (std::ranges::any_of(m_rows, hasText)) continue;
    const auto place = static_cast<std::ptrdiff_t>(column);
    m_columns.erase(m_columns.begin() + place);
    for (Row& row : m_rows)
      if (column < row.cells.size()) row.cells.erase(row.cells.begin() + place);
  }
}

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths;
  for (const Column& column : m_columns) widths.push_back(displayWidth(column.header));
  for (const Row& row : m_rows) {
    if (row.kind != Row::Kind::Cells) continue;
    for (std::size_t i = 0; i < row.cells.size(); ++i) widths[i] = std::max(widths[i], displayWidth(row.cells[i].text));
  }
  const std::size_t widest = outputWidth();
  const std::size_t excess = totalWidth(widths) > widest ? totalWidth(widths) - widest : 0;
  std::size_t& flexible = hasTextColumn() ? widths.back() : widths.front();
  if (excess > 0) flexible = std::max(kNarrowest, flexible > excess ? flexible - excess : 0);
  return widths;
}

std::string Table::rowOf(std::vector<Cell> cells, const std::vector<std::size_t>& widths, bool hasColour) const {
  if (!hasTextColumn() || cells.size() < widths.size()) return lineOf(cells, widths, hasColour);
  const std::vector<std::string> lines = wrapped(cells.back().text, widths.back());
  std::string text;
  for (const std::string& line : lines) {
    cells.back().text = line;
    text += lineOf(cells, widths, hasColour);
    for (Cell& cell : cells) cell.text.clear();
  }
  return text;
}

std::string Table::lineOf(const std::vector<Cell>& cells, const std::vector<std::size_t>& widths,
                          bool hasColour) const {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += std::string(kGap, ' ');
    line += padded(cells[i], widths[i], m_columns[i].align, hasColour);
  }
  return withoutTrailingSpace(std::move(line));
}

std::string Table::toString(bool hasColour) const {
  const std::vector<std::size_t> columnWidths = widths();
  std::vector<Cell> headers;
  for (const Column& column : m_columns) headers.emplace_back(column.header, Style::Dim);
  std::string text = lineOf(headers, columnWidths, hasColour);
  for (const Row& row : m_rows) switch (row.kind) {
      case Row::Kind::Cells: text += rowOf(row.cells, columnWidths, hasColour); break;
      case Row::Kind::Heading: text += styled(row.cells.front().text, Style::Bold, hasColour) + "\n"; break;
      case Row::Kind::Rule: {
        std::string rule;
        for (std::size_t i = 0; i < totalWidth(columnWidths); ++i) rule += "─";
        text += styled(rule, Style::Dim, hasColour) + "\n";
      }
    }
  return text;
}

}  // namespace fuseline::cli
