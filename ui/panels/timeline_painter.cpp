// Paints the ruler, tracks with their boxes, links between them, and what is measured.
// SPDX-License-Identifier: Apache-2.0
#include "ui/panels/timeline_painter.h"

#include "ui/panels/plot_painting.h"
#include "ui/theme/format.h"

#include <QPainterPath>

#include <algorithm>
#include <cmath>

namespace fuseline::ui {

namespace {

constexpr double kPixelsPerTick = 110.0;
constexpr double kLeastLabelPx = 24.0;

}  // namespace

TimelinePainter::TimelinePainter(QPainter& painter, const TimelinePicture& picture, QSizeF size, const Theme& theme)
    : m_painter(painter), m_picture(picture), m_width(size.width()), m_height(size.height()), m_theme(theme) {}

void TimelinePainter::paint() {
  paintRuler();
  for (std::size_t track = 0; track < tracks().size(); ++track) paintTrack(track);
  m_painter.setRenderHint(QPainter::Antialiasing);
  paintLinks();
  paintArea();
}

bool TimelinePainter::isSelected(const TimelineItem& item) const {
  return std::ranges::any_of(item.owners, [&](const QString& id) { return m_picture.selection.contains(id); });
}

void TimelinePainter::paintRuler() {
  m_painter.setFont(scaledFont(0.85));
  for (const double moment : m_picture.range.ticks(static_cast<int>(m_width / kPixelsPerTick))) {
    const double x = std::round(m_picture.range.xAt(moment, m_width));
    m_painter.setPen(m_theme.colors().grid);
    m_painter.drawLine(QPointF(x, TimelineStack::kRulerHeightPx - 5), QPointF(x, m_height));
    m_painter.setPen(m_theme.colors().dimText);
    m_painter.drawText(QRectF(x + 4, 0, kPixelsPerTick, TimelineStack::kRulerHeightPx),
                       Qt::AlignVCenter | Qt::AlignLeft,
                       moment == 0.0 ? QStringLiteral("0") : formatDurationNs(moment));
  }
}

void TimelinePainter::paintTrack(std::size_t track) {
  const TimelineTrack& shown = tracks()[track];
  const QRectF head(8, m_picture.stack.top(track), m_width - 16, TimelineStack::kHeadHeightPx);
  m_painter.fillRect(head.adjusted(-8, 1, 8, -1), m_theme.colors().base);  // no line of the ruler crosses a text
  m_painter.setFont(scaledFont(0.95, QFont::DemiBold));
  m_painter.setPen(m_theme.colors().text);
  m_painter.drawText(head, Qt::AlignVCenter | Qt::AlignLeft, shown.name);
  const double nameWidth = QFontMetricsF(m_painter.font()).horizontalAdvance(shown.name);
  m_painter.setFont(scaledFont(0.85));
  m_painter.setPen(m_theme.colors().dimText);
  m_painter.drawText(head.adjusted(nameWidth + 12, 0, 0, 0), Qt::AlignVCenter | Qt::AlignLeft, shown.summary);
  for (const TimelineCell& cell : cellsInView(shown, m_picture.range, m_width)) paintCell(track, cell);
}

/// Passes in their own colour, launches without one, all else in that of its op.
QColor TimelinePainter::fillOf(const TimelineItem& item) const {
  const ThemeColors& colors = m_theme.colors();
  if (item.level == TimelineLevel::Pass)
    return mixed(item.isBackward ? colors.backward : colors.forward, colors.base, 0.28);
  if (item.level == TimelineLevel::Launch) return mixed(colors.dimText, colors.base, 0.3);
  return mixed(m_theme.categoryColor(item.category), colors.base, item.level == TimelineLevel::Step ? 0.55 : 0.35);
}

void TimelinePainter::paintCell(std::size_t track, const TimelineCell& cell) {
  const TimelineItem& item = tracks()[track].items[cell.first];
  const QRectF area = m_picture.stack.areaOf(track, cell);
  const QColor fill = fillOf(item);
  m_painter.fillRect(area, fill);
  if (cell.isSeveral()) m_painter.fillRect(area, QBrush(m_theme.colors().text, Qt::Dense6Pattern));
  const ThemeColors& colors = m_theme.colors();
  const bool isMarked = isSelected(item);
  if (area.width() >= 2.0 || isMarked) {
    const QColor fused = item.isBackward ? colors.backward : colors.forward;
    const QColor line = isMarked ? colors.accent : item.isFused ? fused : mixed(fill, colors.text, 0.75);
    m_painter.setPen(QPen(line, isMarked || item.isFused ? 2.0 : 1.0));
    m_painter.setBrush(Qt::NoBrush);
    m_painter.drawRect(area.adjusted(0.5, 0.5, -0.5, -0.5));
  }
  const auto& cursor = m_picture.cursor;
  if (cursor && cursor->track == track && cell.first <= cursor->item && cursor->item <= cell.last) {
    m_painter.setPen(QPen(colors.text, 1.2, Qt::DotLine));
    m_painter.drawRect(area.adjusted(2.5, 2.5, -2.5, -2.5));
  }
  if (!cell.isSeveral()) paintLabel(area, item, fill);
}

void TimelinePainter::paintLabel(const QRectF& area, const TimelineItem& item, const QColor& ground) {
  if (area.width() < kLeastLabelPx) return;
  const bool isStep = item.level == TimelineLevel::Step;
  m_painter.setFont(scaledFont(isStep ? 0.9 : 0.8, item.isFused ? QFont::DemiBold : QFont::Normal));
  m_painter.setPen(textOn(ground));
  const QRectF text = area.adjusted(5, 0, -4, 0);
  m_painter.drawText(text, Qt::AlignVCenter | Qt::AlignLeft,
                     QFontMetricsF(m_painter.font()).elidedText(item.label, Qt::ElideRight, text.width()));
}

/// From what the selected ops took in the unfused plan to what they take in the fused one.
void TimelinePainter::paintLinks() {
  if (m_picture.links.empty() || m_picture.selection.isEmpty()) return;
  QColor band = m_theme.colors().accent;
  band.setAlpha(48);
  const std::vector<QRectF> uppers = m_picture.stack.areasOf(0, m_picture.range, m_width);
  const std::vector<QRectF> lowers = m_picture.stack.areasOf(1, m_picture.range, m_width);
  for (const auto& [upper, lower] : m_picture.links) {
    if (!isSelected(tracks()[0].items[upper]) && !isSelected(tracks()[1].items[lower])) continue;
    const QRectF& from = uppers[upper];
    const QRectF& to = lowers[lower];
    if (from.isNull() || to.isNull()) continue;
    QPainterPath path(from.bottomLeft());
    path.lineTo(from.bottomRight());
    path.lineTo(to.topRight());
    path.lineTo(to.topLeft());
    path.closeSubpath();
    m_painter.fillPath(path, band);
  }
}

/// Its rows, between two lines that lead up to the ruler.
void TimelinePainter::paintArea() {
  if (!m_picture.area) return;
  const TimelineArea& area = *m_picture.area;
  const double left = m_picture.range.xAt(area.startNs, m_width);
  const double right = m_picture.range.xAt(area.endNs, m_width);
  QColor fill = m_theme.colors().accent;
  fill.setAlpha(36);
  double bottom = TimelineStack::kRulerHeightPx;
  for (const auto& [track, row] : area.rows) {
    const QRectF band(left, m_picture.stack.rowTop(track, row), right - left, m_picture.stack.rowHeight(track, row));
    m_painter.fillRect(band, fill);
    bottom = std::max(bottom, band.bottom());
  }
  m_painter.setPen(QPen(m_theme.colors().accent, 1));
  for (const double x : {left, right}) m_painter.drawLine(QPointF(x, 0), QPointF(x, bottom));
  paintAreaText(left, right);
}

void TimelinePainter::paintAreaText(double left, double right) {
  m_painter.setFont(scaledFont(0.9, QFont::DemiBold));
  const double textWidth = QFontMetricsF(m_painter.font()).horizontalAdvance(m_picture.areaText) + 12;
  const QRectF ground(std::clamp((left + right - textWidth) / 2, 0.0, std::max(0.0, m_width - textWidth)), 1, textWidth,
                      TimelineStack::kRulerHeightPx - 2);
  m_painter.fillRect(ground, m_theme.colors().accent);
  m_painter.setPen(m_theme.colors().onAccent);
  m_painter.drawText(ground, Qt::AlignCenter, m_picture.areaText);
}

}  // namespace fuseline::ui
