// Paints marks.
// SPDX-License-Identifier: Apache-2.0
#include "ui/widgets/plot_painting.h"

#include "ui/theme/format.h"

#include <QFontMetricsF>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fuseline::ui {

namespace {

constexpr double kSmallFont = 0.85;

/// As many corners, evenly around; the first one at an angle from the top.
QPolygonF cornersAround(QPointF centre, double radius, int numCorners, double angle) {
  QPolygonF corners;
  for (int corner = 0; corner < numCorners; ++corner) {
    const double at = angle + 2.0 * std::numbers::pi * corner / numCorners;
    corners.append(centre + radius * QPointF(std::sin(at), -std::cos(at)));
  }
  return corners;
}

void paintRays(QPainter& painter, QPointF centre, double radius, int numRays, double angle) {
  for (const QPointF& end : cornersAround(centre, radius, numRays, angle)) painter.drawLine(centre, end);
}

}  // namespace

QFont plotFont() { return scaledFont(kSmallFont); }

double plotTextHeight() { return QFontMetricsF(plotFont()).height(); }

double plotTextWidth(const QString& text) { return QFontMetricsF(plotFont()).horizontalAdvance(text); }

QString axisNumber(double value) { return QString::number(value, 'g', 6); }

QString tickTime(double ns) {
  const QString time = formatDurationNs(ns);
  QString number = time.section(u' ', 0, 0);
  while (number.contains(u'.') && (number.endsWith(u'0') || number.endsWith(u'.'))) number.chop(1);
  return number + u' ' + time.section(u' ', 1);
}

QColor faded(QColor color, double alpha) {
  color.setAlphaF(static_cast<float>(alpha));
  return color;
}

QColor mixed(const QColor& a, const QColor& b, double share) {
  const auto mix = [share](int x, int y) { return static_cast<int>(std::lround(x * share + y * (1.0 - share))); };
  return {mix(a.red(), b.red()), mix(a.green(), b.green()), mix(a.blue(), b.blue())};
}

QPolygonF diamond(QPointF centre, double radius) { return cornersAround(centre, radius, 4, 0.0); }

void paintMark(QPainter& painter, int look, QPointF centre, double radius) {
  constexpr double kEighth = std::numbers::pi / 4.0;
  switch (look % kNumMarks) {
    case 0: painter.drawEllipse(centre, radius, radius); break;
    case 1: painter.drawPolygon(cornersAround(centre, 1.2 * radius, 4, kEighth)); break;
    case 2: painter.drawPolygon(diamond(centre, 1.3 * radius)); break;
    case 3: painter.drawPolygon(cornersAround(centre, 1.3 * radius, 3, 0.0)); break;
    case 4: painter.drawPolygon(cornersAround(centre, 1.3 * radius, 3, 4.0 * kEighth)); break;
    case 5: paintRays(painter, centre, 1.3 * radius, 4, kEighth); break;
    case 6: paintRays(painter, centre, 1.3 * radius, 4, 0.0); break;
    default: paintRays(painter, centre, 1.3 * radius, 5, 0.0); break;
  }
}

void paintTimeAxis(QPainter& painter, const QRectF& area, const LinearRange& axis, const Theme& theme) {
  constexpr double kLeastTickPx = 64.0;
  const int most = std::max(2, static_cast<int>(area.width() / kLeastTickPx));
  for (const double value : axis.ticks(most)) {
    const double x = std::round(area.left() + area.width() * axis.shareOf(value)) + 0.5;
    painter.setPen(theme.colors().grid);
    painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
    painter.setPen(theme.colors().dimText);
    painter.drawText(QRectF(x - kLeastTickPx / 2, area.bottom() + 2, kLeastTickPx, plotTextHeight()), Qt::AlignCenter,
                     axisNumber(value));
  }
  painter.setPen(theme.colors().border);
  painter.drawLine(area.bottomLeft(), area.bottomRight());
}

}  // namespace fuseline::ui
