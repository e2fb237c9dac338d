// Draws two histograms over each other.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timings/round_comparison_view.h"

#include "ui/theme/baseline_colors.h"
#include "ui/widgets/plot_painting.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr double kRoundGapPx = 6.0;
constexpr int kWordLines = 3;

}  // namespace

RoundComparisonView::RoundComparisonView(const Theme& theme, QWidget* parent) : QWidget(parent), m_theme(theme) {
  setAccessibleName(tr("Rounds vs. baseline"));
  connect(&theme, &Theme::changed, this, qOverload<>(&QWidget::update));
}

void RoundComparisonView::setComparison(RoundComparison comparison) {
  m_comparison = std::move(comparison);
  const QString words = wordsOf(m_comparison);
  setAccessibleDescription(m_comparison.title + QStringLiteral(": ") + words);
  setToolTip(m_comparison.baseline + u'\n' + words);
  update();
}

QSize RoundComparisonView::minimumSizeHint() const { return {200, 120}; }

/// Between the title and the axis, beneath which stand words.
QRectF RoundComparisonView::plotArea() const {
  const double line = plotTextHeight();
  return QRectF(rect()).adjusted(kRoundGapPx, line + kRoundGapPx, -kRoundGapPx,
                                 -((1 + kWordLines) * line + kRoundGapPx));
}

double RoundComparisonView::xOf(double ns) const {
  const QRectF area = plotArea();
  return area.left() + area.width() * std::clamp(m_comparison.axis.shareOf(m_comparison.inUnit(ns)), 0.0, 1.0);
}

/// Bar by bar, down to the axis at both ends. The highest bar of both runs is as high as the area.
QPolygonF RoundComparisonView::outlineOf(const RoundHistogram& side) const {
  const QRectF area = plotArea();
  const double wide = area.width() / static_cast<double>(side.shares.size());
  QPolygonF outline({area.bottomLeft()});
  double x = area.left();
  for (const double share : side.shares) {
    const double y = area.bottom() - area.height() * share / m_comparison.largestShare();
    outline << QPointF(x, y) << QPointF(x + wide, y);
    x += wide;
  }
  return outline << area.bottomRight();
}

void RoundComparisonView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.fillRect(rect(), m_theme.colors().base);
  painter.setFont(plotFont());
  paintTitle(painter);
  if (!m_comparison.missing.isEmpty()) {
    painter.setPen(m_theme.colors().dimText);
    painter.drawText(rect(), Qt::AlignCenter | Qt::TextWordWrap, m_comparison.missing);
    return;
  }
  if (m_comparison.next.shares.empty()) return;
  paintTimeAxis(painter, plotArea(), m_comparison.axis, m_theme);
  paintSides(painter);
  paintWords(painter);
}

/// Which run is which: the letter in its color, then the one that is filled.
void RoundComparisonView::paintTitle(QPainter& painter) const {
  const double line = plotTextHeight();
  const QRectF place = QRectF(rect()).adjusted(kRoundGapPx, kRoundGapPx / 2, -kRoundGapPx, 0);
  const QPixmap mark = baselineMark(m_theme, m_comparison.slot, qRound(line));
  painter.drawPixmap(place.topLeft(), mark);
  const double now = plotTextWidth(tr("now")) + line;
  painter.fillRect(QRectF(place.right() - now, place.top() + 2, line - 4, line - 4),
                   faded(m_theme.colors().accent, 0.45));
  painter.setPen(m_theme.colors().text);
  painter.drawText(place, Qt::AlignRight | Qt::AlignTop, tr("now"));
  const QRectF name = place.adjusted(line + kRoundGapPx, 0, -now - kRoundGapPx, 0);
  painter.drawText(name, Qt::AlignLeft | Qt::AlignTop,
                   painter.fontMetrics().elidedText(m_comparison.baseline.section(QStringLiteral(": "), 1),
                                                    Qt::ElideMiddle, qRound(name.width())));
}

void RoundComparisonView::paintSides(QPainter& painter) const {
  const QColor then = baselineColor(m_theme, m_comparison.slot);
  const QColor now = m_theme.colors().accent;
  painter.setPen(QPen(now, 1.0));
  painter.setBrush(faded(now, 0.45));
  painter.drawPolygon(outlineOf(m_comparison.next));
  painter.setPen(QPen(then, 1.4));
  painter.setBrush(QBrush(then, Qt::BDiagPattern));
  painter.drawPolygon(outlineOf(m_comparison.base));
  painter.setBrush(Qt::NoBrush);
  paintMedian(painter, m_comparison.base, QPen(then, 2.0, Qt::DashLine));
  paintMedian(painter, m_comparison.next, QPen(now, 2.0));
}

void RoundComparisonView::paintMedian(QPainter& painter, const RoundHistogram& side, const QPen& pen) const {
  const QRectF area = plotArea();
  const double x = xOf(side.stats.median);
  painter.setPen(pen);
  painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
}

void RoundComparisonView::paintWords(QPainter& painter) const {
  const double line = plotTextHeight();
  const QRectF place(kRoundGapPx, height() - kWordLines * line, width() - 2 * kRoundGapPx, kWordLines * line);
  painter.setPen(m_comparison.change.change.isSignificant() ? m_theme.colors().text : m_theme.colors().dimText);
  painter.drawText(place, Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap, wordsOf(m_comparison));
}

}  // namespace fuseline::ui
