// A grid of square cells, each with the boxes that reach into it.
// SPDX-License-Identifier: Apache-2.0
#include "ui/layout/box_index.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr double kCellPx = 512.0;
constexpr std::int64_t kMostCells = 64;  // of one box

std::uint64_t keyOf(std::int64_t column, std::int64_t row) {
  return (static_cast<std::uint64_t>(column) << 32u) ^ (static_cast<std::uint64_t>(row) & 0xffffffffu);
}

std::int64_t cellAt(double place) { return static_cast<std::int64_t>(std::floor(place / kCellPx)); }

}  // namespace

BoxIndex::BoxIndex(std::vector<QRectF> boxes) : m_boxes(std::move(boxes)) {
  for (std::size_t i = 0; i < m_boxes.size(); ++i) {
    const Cells cells = cellsOf(m_boxes[i]);
    if (cells.count() > kMostCells) {
      m_large.push_back(i);
      continue;
    }
    for (std::int64_t row = cells.top; row <= cells.bottom; ++row)
      for (std::int64_t column = cells.left; column <= cells.right; ++column) m_cells[keyOf(column, row)].push_back(i);
  }
}

BoxIndex::Cells BoxIndex::cellsOf(const QRectF& area) {
  return {cellAt(area.left()), cellAt(area.top()), cellAt(area.right()), cellAt(area.bottom())};
}

std::vector<std::size_t> BoxIndex::near(const QRectF& area) const {
  std::vector<std::size_t> found = m_large;
  const Cells cells = cellsOf(area);
  if (cells.count() >= static_cast<std::int64_t>(m_boxes.size())) {
    found.resize(m_boxes.size());
    for (std::size_t i = 0; i < found.size(); ++i) found[i] = i;
    return found;
  }
  for (std::int64_t row = cells.top; row <= cells.bottom; ++row)
    for (std::int64_t column = cells.left; column <= cells.right; ++column)
      if (const auto cell = m_cells.find(keyOf(column, row)); cell != m_cells.end())
        found.insert(found.end(), cell->second.begin(), cell->second.end());
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  return found;
}

}  // namespace fuseline::ui
