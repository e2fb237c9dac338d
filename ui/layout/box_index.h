// BoxIndex: finds the boxes near an area without a look at all of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QRectF>

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace fuseline::ui {

/// The boxes never change. Building is linear; a query costs as many steps as there are boxes near its area.
class BoxIndex {
 public:
  explicit BoxIndex(std::vector<QRectF> boxes);

  const std::vector<QRectF>& boxes() const { return m_boxes; }
  /// Positions in boxes(), ascending, of all that intersect the area, edges included, and of some others near it.
  std::vector<std::size_t> near(const QRectF& area) const;

 private:
  struct Cells {
    std::int64_t left = 0;
    std::int64_t top = 0;
    std::int64_t right = 0;
    std::int64_t bottom = 0;
    std::int64_t count() const { return (right - left + 1) * (bottom - top + 1); }
  };
  static Cells cellsOf(const QRectF& area);

  std::vector<QRectF> m_boxes;
  std::vector<std::size_t> m_large;  // those that would be in too many cells
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> m_cells;
};

}  // namespace fuseline::ui
