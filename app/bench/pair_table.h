// Tables of a suite in which two plans ran interleaved: medians, spreads, rounds and the speed-up, by pipeline.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/cli/table.h"
#include "core/profile/stats.h"

#include <string>
#include <vector>

namespace fuseline::cli {

/// "0.123": the median in milliseconds.
std::string medianMs(const SampleStats& stats);

/// Columns of both plans, with those of the suite on either side.
std::vector<Column> pairColumns(std::vector<Column> before, const std::vector<Column>& after);

void addPairCells(std::vector<Cell>& cells, const SampleStats& unfused, const SampleStats& fused,
                  const RatioStats& speedup);

/// The cells of these columns. Row: has unfused, fused and speedup.
template <class Row>
std::vector<Cell> pairCells(std::vector<Cell> before, const Row& row, const std::vector<Cell>& after) {
  addPairCells(before, row.unfused, row.fused, row.speedup);
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

/// The rows, with a heading where another pipeline begins. Row: has what.pipeline.
template <class Row, class CellsOf>
void addRowsByPipeline(Table& table, const std::vector<Row>& rows, const CellsOf& cellsOf) {
  const std::string* pipeline = nullptr;
  for (const Row& row : rows) {
    if (!pipeline || row.what.pipeline != *pipeline) table.addHeading(row.what.pipeline);
    pipeline = &row.what.pipeline;
    table.addRow(cellsOf(row));
  }
}

}  // namespace fuseline::cli
