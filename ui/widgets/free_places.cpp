// Looks only at what reaches into the same squares of a grid.
// SPDX-License-Identifier: Apache-2.0
#include "ui/widgets/free_places.h"

#include <algorithm>
#include <cmath>

namespace fuseline::ui {

namespace {

constexpr double kSquarePx = 256.0;

int squareOf(double place) { return static_cast<int>(std::floor(place / kSquarePx)); }

/// Calls see(square) for each square that the area reaches into, until it returns false.
template <class See>
bool forSquares(const QRectF& area, const See& see) {
  for (int x = squareOf(area.left()); x <= squareOf(area.right()); ++x)
    for (int y = squareOf(area.top()); y <= squareOf(area.bottom()); ++y)
      if (!see(QPoint(x, y))) return false;
  return true;
}

}  // namespace

void FreePlaces::cover(const QRectF& area) {
  forSquares(area, [&](QPoint square) {
    m_covered[square].push_back(area);
    return true;
  });
}

bool FreePlaces::isFree(const QRectF& area) const {
  return forSquares(area, [&](QPoint square) {
    const auto covered = m_covered.constFind(square);
    return covered == m_covered.cend() ||
           std::ranges::none_of(*covered, [&](const QRectF& other) { return other.intersects(area); });
  });
}

std::optional<QRectF> FreePlaces::take(const std::vector<QRectF>& candidates) {
  const auto found = std::ranges::find_if(candidates, [this](const QRectF& area) { return isFree(area); });
  if (found == candidates.end()) return std::nullopt;
  cover(*found);
  return *found;
}

}  // namespace fuseline::ui
