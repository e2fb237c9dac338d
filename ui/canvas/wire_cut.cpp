// Finds what a straight line crosses.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/wire_cut.h"

namespace fuseline::ui {

namespace {

constexpr double kLineWidthPx = 2.0;
constexpr double kAboveAll = 20.0;

/// QPainterPath::intersects() would close the wire and take its inside for a part of it.
bool crosses(const QLineF& line, const QPainterPath& path) {
  for (const QPolygonF& piece : path.toSubpathPolygons())
    for (qsizetype i = 1; i < piece.size(); ++i)
      if (line.intersects({piece[i - 1], piece[i]}, nullptr) == QLineF::BoundedIntersection) return true;
  return false;
}

bool isCrossed(const LinkItem& item, const QLineF& line) {
  const QRectF around = QRectF(line.p1(), line.p2()).normalized().adjusted(-1, -1, 1, 1);
  const bool isNear = item.path().controlPointRect().adjusted(-1, -1, 1, 1).intersects(around);
  return item.isVisible() && isNear && crosses(line, item.path());
}

}  // namespace

WireCut::WireCut(GraphScene& scene, const Theme& theme, QPointF from)
    : m_scene(&scene), m_line(scene.addLine(QLineF(from, from))) {
  QPen pen(theme.colors().error, kLineWidthPx, Qt::DashLine, Qt::RoundCap);
  pen.setCosmetic(true);
  m_line->setPen(pen);
  m_line->setZValue(kAboveAll);
}

WireCut::~WireCut() {
  if (!m_scene) return;
  delete m_line;
  for (LinkItem* item : m_scene->links()) item->setCut(false);
}

void WireCut::moveTo(QPointF end) {
  m_line->setLine(QLineF(m_line->line().p1(), end));
  mark();
}

void WireCut::mark() {
  for (LinkItem* item : m_scene->links()) item->setCut(isCrossed(*item, m_line->line()));
}

std::vector<Link> WireCut::crossed() const {
  std::vector<Link> links;
  for (const LinkItem* item : m_scene->links())
    if (isCrossed(*item, m_line->line())) links.push_back(item->link());
  return links;
}

}  // namespace fuseline::ui
