// Columns and cells of two plans.
// SPDX-License-Identifier: Apache-2.0
#include "app/bench/pair_table.h"

#include "app/cli/stat_cells.h"

#include <fmt/format.h>

namespace fuseline::cli {

std::string medianMs(const SampleStats& stats) { return fmt::format("{:.3f}", stats.median / 1e6); }

std::vector<Column> pairColumns(std::vector<Column> before, const std::vector<Column>& after) {
  for (const char* header : {"unfused ms", "± %", "fused ms", "± %", "n", "speed-up"}) before.push_back({header});
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

void addPairCells(std::vector<Cell>& cells, const SampleStats& unfused, const SampleStats& fused,
                  const RatioStats& speedup) {
  for (const SampleStats* plan : {&unfused, &fused}) {
    cells.emplace_back(medianMs(*plan));
    cells.emplace_back(spreadText(*plan), Style::Dim);
  }
  cells.emplace_back(fmt::format("{}", fused.count), Style::Dim);
  cells.push_back(speedupCell(speedup));
}

}  // namespace fuseline::cli
