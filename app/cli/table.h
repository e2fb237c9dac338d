// Aligned tables for the terminal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/cli/terminal.h"

#include <string>
#include <string_view>
#include <vector>

namespace fuseline::cli {

enum class Align { Left, Right };

struct Column {
  std::string header;
  Align align = Align::Right;
};

struct Cell {
  std::string text;
  Style style = Style::Plain;

  Cell(std::string value = {}, Style look = Style::Plain) : text(std::move(value)), style(look) {}
  Cell(const char* value) : text(value) {}
};

/// Rows of cells under headers, at most outputWidth() wide: a last column of text is wrapped, else the first one is
/// cut.
class Table {
 public:
  explicit Table(std::vector<Column> columns);

  /// Missing cells are empty. Control characters of texts become visible.
  void addRow(std::vector<Cell> cells);
  /// A line of text over the whole width.
  void addHeading(std::string_view text);
  void addRule();

  /// Takes away what no row has anything in; the first column stays.
  void dropEmptyColumns();
  std::string toString(bool hasColour) const;

 private:
  struct Row {
    enum class Kind { Cells, Heading, Rule } kind = Kind::Cells;
    std::vector<Cell> cells;
  };

  std::vector<std::size_t> widths() const;
  bool hasTextColumn() const { return m_columns.back().align == Align::Left; }
  std::string rowOf(std::vector<Cell> cells, const std::vector<std::size_t>& widths, bool hasColour) const;
  std::string lineOf(const std::vector<Cell>& cells, const std::vector<std::size_t>& widths, bool hasColour) const;

  std::vector<Column> m_columns;
  std::vector<Row> m_rows;
};

}  // namespace fuseline::cli
