// FreePlaces: finds room for labels between things that they must not cover.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QHash>
#include <QPoint>
#include <QRectF>

#include <optional>
#include <vector>

namespace fuseline::ui {

class FreePlaces {
 public:
  /// This area is covered.
  void cover(const QRectF& area);
  /// The first of these areas that meets no covered one, covered from then on; nullopt: there is none.
  std::optional<QRectF> take(const std::vector<QRectF>& candidates);

 private:
  bool isFree(const QRectF& area) const;

  QHash<QPoint, std::vector<QRectF>> m_covered;  // by the squares of a grid that they reach into
};

}  // namespace fuseline::ui
