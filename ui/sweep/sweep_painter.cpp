// Axes, lines, marks and the legend.
// SPDX-License-Identifier: Apache-2.0
#include "ui/sweep/sweep_painter.h"

#include "ui/widgets/plot_painting.h"
#include "ui/widgets/translated.h"

#include <array>
#include <cmath>

namespace fuseline::ui {

namespace {

constexpr double kRadiusPx = 4.0;
constexpr double kCapPx = 3.5;  // half the width of a whisker's end

}  // namespace

QString whyNothing(const SweepPlot& plot) {
  return plot.quantity == SweepQuantity::OverFirstRecipe
             ? translated("No comparison: measure the same size with two recipes.")
             : translated("No measurements yet.");
}

void SweepPainter::paint() {
  m_painter.setRenderHint(QPainter::Antialiasing);
  m_painter.fillRect(QRectF(QPointF(), m_frame.size()), m_theme.colors().base);
  m_painter.setFont(plotFont());
  if (plot().isEmpty()) return paintNothing();
  paintAxes();
  paintSizes();
  if (plot().isRatio()) paintReference();
  paintBorders();
  for (const SweepSeries& series : plot().series) paintSeries(series);
  for (const SweepLegendEntry& entry : m_frame.legend()) paintLegend(entry);
}

QColor SweepPainter::colorOf(int look) const {
  const ThemeColors& c = m_theme.colors();
  const std::array colors = {c.forward, c.backward, c.activation, c.joint, c.elementwise, c.branch, c.neutral, c.error};
  return colors[static_cast<std::size_t>(look) % colors.size()];
}

void SweepPainter::paintNothing() {
  m_painter.setPen(m_theme.colors().dimText);
  m_painter.drawText(QRectF(QPointF(), m_frame.size()).adjusted(kSweepGapPx, kSweepGapPx, -kSweepGapPx, -kSweepGapPx),
                     Qt::AlignCenter | Qt::TextWordWrap, whyNothing(plot()));
}

void SweepPainter::paintAxes() {
  const QRectF area = m_frame.plotArea();
  const double line = plotTextHeight();
  const ThemeColors& colors = m_theme.colors();
  for (const double value : m_frame.valueTicks()) {
    const double y = std::round(m_frame.yOf(value)) + 0.5;
    m_painter.setPen(colors.grid);
    m_painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    m_painter.setPen(colors.dimText);
    m_painter.drawText(QRectF(0, y - line / 2, area.left() - kSweepGapPx, line), Qt::AlignRight | Qt::AlignVCenter,
                       m_frame.valueText(value));
  }
  m_painter.setPen(colors.border);
  m_painter.drawLine(area.topLeft(), area.bottomLeft());
  m_painter.drawLine(area.bottomLeft(), area.bottomRight());
  m_painter.setPen(colors.dimText);
  m_painter.drawText(QRectF(kSweepGapPx, area.top() - line - kSweepGapPx, area.width(), line),
                     Qt::AlignLeft | Qt::AlignVCenter, nameOf(plot().quantity));
  m_painter.drawText(QRectF(area.left(), area.bottom() + line + 2, area.width(), line), Qt::AlignRight, plot().symbol);
}

/// Beside the sizes that were measured; where they are too close, not all of them.
void SweepPainter::paintSizes() {
  const QRectF area = m_frame.plotArea();
  const double line = plotTextHeight();
  double free = -1e9;
  for (const double size : plot().sizes) {
    const double x = std::round(m_frame.xOf(size)) + 0.5;
    const QString text = QString::number(size, 'f', 0);
    const double half = plotTextWidth(text) / 2.0;
    m_painter.setPen(m_theme.colors().grid);
    m_painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
    if (x - half < free) continue;
    free = x + half + 2 * kSweepGapPx;
    m_painter.setPen(m_theme.colors().dimText);
    m_painter.drawText(QRectF(x - half - 1, area.bottom() + 2, 2 * half + 2, line), Qt::AlignCenter, text);
  }
}

/// Where nothing is gained.
void SweepPainter::paintReference() {
  const QRectF area = m_frame.plotArea();
  const double y = std::round(m_frame.yOf(1.0)) + 0.5;
  m_painter.setPen(QPen(m_theme.colors().text, 1.2));
  m_painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
}

/// Lines that meet at one size write beneath each other.
void SweepPainter::paintBorders() {
  const QRectF area = m_frame.plotArea();
  double y = area.top();
  for (const SweepBorder& border : plot().borders) {
    const double x = std::round(m_frame.xOf(border.size)) + 0.5;
    const double wide = plotTextWidth(border.text) + 2;
    m_painter.setPen(QPen(colorOf(border.look), 1.4, Qt::DotLine));
    m_painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
    const double left = x + kSweepGapPx + wide > area.right() ? x - kSweepGapPx - wide : x + kSweepGapPx;
    const QRectF place(left, y, wide, plotTextHeight());
    m_painter.fillRect(place, faded(m_theme.colors().base, 0.8));
    m_painter.setPen(m_theme.colors().text);
    m_painter.drawText(place, Qt::AlignCenter, border.text);
    y += plotTextHeight();
  }
}

/// Hollow dots: not statistically significant.
void SweepPainter::paintSeries(const SweepSeries& series) {
  const QColor color = colorOf(series.look);
  QPolygonF line;
  for (const SweepDot& dot : series.dots) line.append(m_frame.placeOf(dot));
  m_painter.setPen(QPen(color, 1.6, series.isDashed ? Qt::DashLine : Qt::SolidLine));
  m_painter.drawPolyline(line);
  m_painter.setPen(QPen(color, 1.4));
  for (const SweepDot& dot : series.dots) {
    paintWhisker(dot);
    m_painter.setBrush(dot.isClear && !series.isDashed ? color : m_theme.colors().base);
    paintMark(m_painter, series.look, m_frame.placeOf(dot), kRadiusPx);
    m_painter.setBrush(Qt::NoBrush);
  }
}

void SweepPainter::paintWhisker(const SweepDot& dot) {
  const double x = m_frame.xOf(dot.size);
  const double low = m_frame.yOf(dot.low);
  const double high = m_frame.yOf(dot.high);
  if (low - high < 2.0) return;
  m_painter.drawLine(QPointF(x, low), QPointF(x, high));
  for (const double y : {low, high}) m_painter.drawLine(QPointF(x - kCapPx, y), QPointF(x + kCapPx, y));
}

void SweepPainter::paintCursor(const SweepDot& dot, bool hasFocus) {
  m_painter.setPen(QPen(hasFocus ? m_theme.colors().accent : m_theme.colors().text, hasFocus ? 2.0 : 1.2));
  m_painter.setBrush(Qt::NoBrush);
  m_painter.drawEllipse(m_frame.placeOf(dot), kRadiusPx + 4.5, kRadiusPx + 4.5);
}

void SweepPainter::paintLegend(const SweepLegendEntry& entry) {
  const QColor color = entry.look ? colorOf(*entry.look) : m_theme.colors().text;
  const QPointF start = entry.place + QPointF(0, plotTextHeight() / 2);
  m_painter.setPen(QPen(color, 1.6, entry.isDashed ? Qt::DashLine : Qt::SolidLine));
  if (!entry.isHollow) m_painter.drawLine(start, start + QPointF(kSweepLegendLinePx, 0));
  m_painter.setPen(QPen(color, 1.4));
  if (entry.isHollow) paintMark(m_painter, 0, start + QPointF(kSweepLegendLinePx / 2, 0), kRadiusPx);
  m_painter.setBrush(color);
  if (entry.look) paintMark(m_painter, *entry.look, start + QPointF(kSweepLegendLinePx / 2, 0), kRadiusPx);
  m_painter.setBrush(Qt::NoBrush);
  m_painter.setPen(m_theme.colors().text);
  const QSizeF size(plotTextWidth(entry.text) + 2, plotTextHeight());
  m_painter.drawText(QRectF(entry.place + QPointF(kSweepLegendLinePx + kSweepGapPx, 0), size),
                     Qt::AlignLeft | Qt::AlignVCenter, entry.text);
}

}  // namespace fuseline::ui
