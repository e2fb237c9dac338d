// WireCut: a line drawn across wires, which are removed when it ends. Until then they are only marked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/graph_scene.h"

#include <QGraphicsLineItem>
#include <QPointer>

#include <vector>

namespace fuseline::ui {

class WireCut {
 public:
  /// from: in scene coordinates.
  WireCut(GraphScene& scene, const Theme& theme, QPointF from);
  /// Takes its line and its marks away.
  ~WireCut();
  WireCut(const WireCut&) = delete;
  WireCut& operator=(const WireCut&) = delete;

  void moveTo(QPointF end);
  /// Marks what the line crosses; again where wires were drawn anew meanwhile.
  void mark();
  /// Those that the line crosses.
  std::vector<Link> crossed() const;

 private:
  QPointer<GraphScene> m_scene;  // which owns the line, and may end first
  QGraphicsLineItem* m_line;
};

}  // namespace fuseline::ui
