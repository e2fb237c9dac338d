// Paints the ruler, tracks with their boxes, links between them, and what is measured.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timeline/timeline_painter.h"

#include "ui/theme/format.h"
#include "ui/timeline/timeline_selection.h"
#include "ui/timings/pass_look.h"
#include "ui/widgets/plot_painting.h"
#include "ui/widgets/translated.h"

#include <QPainterPath>

#include <algorithm>
#include <cmath>

namespace fuseline::ui {

namespace {

constexpr double kPixelsPerTick = 110.0;
constexpr double kLeastLabelPx = 24.0;
constexpr double kLeastLabelHeightPx = 12.0;
constexpr double kLeastNotePx = 8.0;
constexpr double kLeastLiftPx = 7.0;

}  // namespace

QRectF noteArea(const TimelineStack& stack, const TimelineRange& range, double widthPx, const PlacedNote& placed) {
  const double left = range.xAt(placed.note.startNs, widthPx);
  const double right = std::max(range.xAt(placed.note.endNs, widthPx), left + kLeastNotePx);
  return {left, stack.noteTop(placed.lane) + 1, right - left, TimelineStack::kNoteHeightPx - 2};
}

TimelinePainter::TimelinePainter(QPainter& painter, const TimelinePicture& picture, QSizeF size, const Theme& theme)
    : m_painter(painter), m_picture(picture), m_width(size.width()), m_height(size.height()), m_theme(theme) {}

/// Paints the scrolling tracks, then pinned tracks, the ruler and notes on top.
void TimelinePainter::paint() {
  const double covered = m_picture.stack.pinnedBottom();
  paintGrid();
  paintTracks(false);
  m_painter.fillRect(QRectF(0, 0, m_width, covered), m_theme.colors().base);
  m_painter.setClipRect(QRectF(0, 0, m_width, covered));
  paintGrid();
  m_painter.setClipping(false);
  paintTracks(true);
  paintLinks();
  for (const std::size_t track : m_picture.stack.tracks().order()) paintPassLinks(track);
  paintRuler();
  paintNotes();
  paintArea();
  if (!m_picture.dropY) return;
  m_painter.setPen(QPen(m_theme.colors().accent, 2));
  m_painter.drawLine(QPointF(0, *m_picture.dropY), QPointF(m_width, *m_picture.dropY));
}

void TimelinePainter::paintTracks(bool areSticking) {
  for (const std::size_t track : m_picture.stack.tracks().order())
    if (m_picture.stack.sticks(track) == areSticking) paintTrack(track);
}

bool TimelinePainter::isSelected(const TimelineItem& item) const { return ui::isSelected(item, m_picture.selection); }

void TimelinePainter::paintGrid() {
  m_painter.setPen(m_theme.colors().grid);
  for (const double moment : m_picture.range.ticks(static_cast<int>(m_width / kPixelsPerTick))) {
    const double x = std::round(m_picture.range.xAt(moment, m_width));
    m_painter.drawLine(QPointF(x, m_picture.stack.rulerTop() + TimelineStack::kRulerHeightPx - 5),
                       QPointF(x, m_height));
  }
}

void TimelinePainter::paintRuler() {
  const double top = m_picture.stack.rulerTop();
  m_painter.fillRect(QRectF(0, top, m_width, TimelineStack::kRulerHeightPx - 5), m_theme.colors().base);
  m_painter.setFont(scaledFont(0.85));
  m_painter.setPen(m_theme.colors().dimText);
  for (const double moment : m_picture.range.ticks(static_cast<int>(m_width / kPixelsPerTick))) {
    const double x = std::round(m_picture.range.xAt(moment, m_width));
    m_painter.drawText(QRectF(x + 4, top, kPixelsPerTick, TimelineStack::kRulerHeightPx),
                       Qt::AlignVCenter | Qt::AlignLeft, moment == 0.0 ? QStringLiteral("0") : tickTime(moment));
  }
}

void TimelinePainter::paintTrack(std::size_t track) {
  paintHead(track);
  const TimelineTrack& shown = tracks()[track];
  std::vector<TimelineCell> narrow;
  for (const TimelineCell& cell : cellsInView(shown, m_picture.range, m_width)) {
    if (!m_picture.stack.tracks().isShown(track, shown.items[cell.first].row)) continue;
    cell.isNarrow() ? narrow.push_back(cell) : paintCell(track, cell);
  }
  for (const TimelineCell& cell : narrow) paintNarrow(track, cell);
  paintRankNames(track);
}

namespace {

QFont rankNameFont() { return scaledFont(0.75); }

/// Labels of boxes that begin below the name of their rank are to the right of it.
double rankNameWidth() { return QFontMetricsF(rankNameFont()).horizontalAdvance(translated("rank %1").arg(10)) + 10; }

}  // namespace

/// At the left edge, over the boxes that begin there.
void TimelinePainter::paintRankNames(std::size_t track) {
  const TimelineTrack& shown = tracks()[track];
  m_painter.setFont(rankNameFont());
  int rank = 0;
  for (int row = 0; row < static_cast<int>(shown.rows.size()); ++row) {
    if (shown.rows[static_cast<std::size_t>(row)] != TimelineLevel::RankStep) continue;
    const QString name = translated("rank %1").arg(rank++);
    if (!m_picture.stack.tracks().isShown(track, row)) continue;
    const double width = QFontMetricsF(m_painter.font()).horizontalAdvance(name) + 8;
    const QRectF area(0, m_picture.stack.rowTop(track, row), width, m_picture.stack.rowHeight(track, row));
    QColor ground = m_theme.colors().base;
    ground.setAlpha(225);
    m_painter.fillRect(area, ground);
    m_painter.setPen(m_theme.colors().dimText);
    m_painter.drawText(area, Qt::AlignCenter, name);
  }
}

/// On top of its neighbors, in the full color of its op, with a wedge: a step of a ten-thousandth of the round is seen.
void TimelinePainter::paintNarrow(std::size_t track, const TimelineCell& cell) {
  constexpr double kWedgePx = 3.0;
  paintCell(track, cell);
  const TimelineItem& item = tracks()[track].items[cell.first];
  if (item.level != TimelineLevel::Step) return;
  const QRectF area = m_picture.stack.areaOf(track, cell);
  m_painter.fillRect(area, mixed(m_theme.categoryColor(item.category), m_theme.colors().text, 0.7));
  m_painter.setRenderHint(QPainter::Antialiasing);
  m_painter.setPen(Qt::NoPen);
  m_painter.setBrush(m_theme.colors().text);
  const QPointF top(area.center().x(), area.top());
  m_painter.drawPolygon(
      QPolygonF({top + QPointF(0, kWedgePx * 1.5), top - QPointF(kWedgePx, 0), top + QPointF(kWedgePx, 0)}));
  m_painter.setRenderHint(QPainter::Antialiasing, false);
}

void TimelinePainter::paintHead(std::size_t track) {
  const TimelineTrack& shown = tracks()[track];
  const double top = m_picture.stack.top(track);
  const QRectF area(0, top + 1, m_width, TimelineStack::kHeadHeightPx - 2);
  m_painter.fillRect(area, m_theme.colors().base);  // no line of the ruler crosses a text
  paintTriangle(track);
  paintPin(track);
  const QRectF text = area.adjusted(m_picture.stack.foldArea(track).right(), 0, -32, 0);
  m_painter.setFont(scaledFont(0.95, QFont::DemiBold));
  m_painter.setPen(m_theme.colors().text);
  m_painter.drawText(text, Qt::AlignVCenter | Qt::AlignLeft, shown.name);
  const double nameWidth = QFontMetricsF(m_painter.font()).horizontalAdvance(shown.name);
  m_painter.setFont(scaledFont(0.85));
  m_painter.setPen(m_theme.colors().dimText);
  m_painter.drawText(text.adjusted(nameWidth + 12, 0, 0, 0), Qt::AlignVCenter | Qt::AlignLeft, shown.summary);
}

/// Down where the track is unfolded, to the right where it is folded.
void TimelinePainter::paintTriangle(std::size_t track) {
  constexpr double kRadiusPx = 4.0;
  const QPointF centre = m_picture.stack.foldArea(track).center();
  const bool isFolded = m_picture.stack.tracks().isFolded(track);
  const auto corner = [&](double along, double across) {
    return centre + kRadiusPx * (isFolded ? QPointF(along, across) : QPointF(across, along));
  };
  m_painter.setRenderHint(QPainter::Antialiasing);
  m_painter.setPen(Qt::NoPen);
  m_painter.setBrush(m_theme.colors().dimText);
  m_painter.drawPolygon(QPolygonF({corner(-0.7, -1.0), corner(-0.7, 1.0), corner(0.8, 0.0)}));
  m_painter.setRenderHint(QPainter::Antialiasing, false);
}

/// Its head filled where the track is pinned.
void TimelinePainter::paintPin(std::size_t track) {
  constexpr double kRadiusPx = 3.5;
  const bool isPinned = m_picture.stack.tracks().isPinned(track);
  const QColor color = isPinned ? m_theme.colors().accent : m_theme.colors().dimText;
  const QPointF head = m_picture.stack.pinArea(track, m_width).center() - QPointF(0, 3);
  m_painter.setRenderHint(QPainter::Antialiasing);
  m_painter.setPen(QPen(color, 1.4));
  m_painter.setBrush(isPinned ? QBrush(color) : QBrush(Qt::NoBrush));
  m_painter.drawEllipse(head, kRadiusPx, kRadiusPx);
  m_painter.drawLine(head + QPointF(0, kRadiusPx), head + QPointF(0, kRadiusPx + 5));
  m_painter.setRenderHint(QPainter::Antialiasing, false);
}

/// Passes in their own color, launches without one, all else in that of its op.
QColor TimelinePainter::fillOf(const TimelineItem& item) const {
  const ThemeColors& colors = m_theme.colors();
  if (item.level == TimelineLevel::Pass) return mixed(passColor(colors, item.phase), colors.base, 0.28);
  if (item.level == TimelineLevel::Launch) return mixed(colors.dimText, colors.base, 0.3);
  return mixed(m_theme.categoryColor(item.category), colors.base, item.level == TimelineLevel::Step ? 0.55 : 0.35);
}

void TimelinePainter::paintCell(std::size_t track, const TimelineCell& cell) {
  const TimelineItem& item = tracks()[track].items[cell.first];
  const QRectF area = m_picture.stack.areaOf(track, cell);
  const QColor fill = fillOf(item);
  m_painter.fillRect(area, fill);
  if (cell.isSeveral()) m_painter.fillRect(area, QBrush(m_theme.colors().text, Qt::Dense6Pattern));
  if (!cell.isSeveral() && item.waitNs > 0.0) paintWait(area, item);
  const ThemeColors& colors = m_theme.colors();
  const bool isMarked = isSelected(item);
  if (area.width() >= 2.0 || isMarked) {
    const QColor fused = passColor(colors, item.phase);
    const QColor line = isMarked ? colors.accent : item.isFused ? fused : mixed(fill, colors.text, 0.75);
    m_painter.setPen(QPen(line, isMarked || item.isFused ? 2.0 : 1.0));
    m_painter.setBrush(Qt::NoBrush);
    m_painter.drawRect(area.adjusted(0.5, 0.5, -0.5, -0.5));
  }
  if (isMatch(track, cell)) paintMatch(area);
  const auto& cursor = m_picture.cursor;
  if (cursor && cursor->track == track && cell.first <= cursor->item && cursor->item <= cell.last) {
    m_painter.setPen(QPen(colors.text, 1.2, Qt::DotLine));
    m_painter.drawRect(area.adjusted(2.5, 2.5, -2.5, -2.5));
  }
  if (!cell.isSeveral()) paintLabel(area, item, fill);
}

/// Hatched: a rank waits first, then data moves.
void TimelinePainter::paintWait(const QRectF& area, const TimelineItem& item) {
  const double durationNs = item.endNs - item.startNs;
  if (durationNs <= 0.0) return;
  QRectF waiting = area;
  waiting.setWidth(area.width() * std::min(1.0, item.waitNs / durationNs));
  m_painter.fillRect(waiting, m_theme.colors().base);
  m_painter.fillRect(waiting, QBrush(fillOf(item), Qt::BDiagPattern));
}

void TimelinePainter::paintLabel(const QRectF& area, const TimelineItem& item, const QColor& ground) {
  if (area.width() < kLeastLabelPx || area.height() < kLeastLabelHeightPx) return;
  const bool isStep = item.level == TimelineLevel::Step;
  m_painter.setFont(scaledFont(isStep ? 0.9 : 0.8, item.isFused ? QFont::DemiBold : QFont::Normal));
  m_painter.setPen(textOn(ground));
  QRectF text = area.adjusted(5, 0, -4, 0);
  if (item.level == TimelineLevel::RankStep) text.setLeft(std::max(text.left(), rankNameWidth()));
  if (text.width() <= 0.0) return;
  m_painter.drawText(text, Qt::AlignVCenter | Qt::AlignLeft,
                     QFontMetricsF(m_painter.font()).elidedText(item.label, Qt::ElideRight, text.width()));
}

/// Between what the selected ops took in the one plan and what they take in the other, whichever stands above.
void TimelinePainter::paintLinks() {
  if (m_picture.links.empty() || m_picture.selection.isEmpty()) return;
  QColor band = m_theme.colors().accent;
  band.setAlpha(48);
  m_painter.setRenderHint(QPainter::Antialiasing);
  m_painter.setClipRect(QRectF(0, m_picture.stack.tracksTop(), m_width, m_height));
  const std::vector<QRectF> firsts = m_picture.stack.areasOf(0, m_picture.range, m_width);
  const std::vector<QRectF> seconds = m_picture.stack.areasOf(1, m_picture.range, m_width);
  for (const auto& [first, second] : m_picture.links) {
    if (!isSelected(tracks()[0].items[first]) && !isSelected(tracks()[1].items[second])) continue;
    const bool isFirstAbove = firsts[first].top() < seconds[second].top();
    const QRectF& from = isFirstAbove ? firsts[first] : seconds[second];
    const QRectF& to = isFirstAbove ? seconds[second] : firsts[first];
    if (from.isNull() || to.isNull()) continue;
    QPainterPath path(from.bottomLeft());
    path.lineTo(from.bottomRight());
    path.lineTo(to.topRight());
    path.lineTo(to.topLeft());
    path.closeSubpath();
    m_painter.fillPath(path, band);
  }
  m_painter.setClipping(false);
}

bool TimelinePainter::isMatch(std::size_t track, const TimelineCell& cell) const {
  const auto first = std::ranges::lower_bound(m_picture.matches, TimelinePlace{track, cell.first});
  return first != m_picture.matches.end() && first->track == track && first->item <= cell.last;
}

/// Dashes around it, which nothing else has.
void TimelinePainter::paintMatch(const QRectF& area) {
  m_painter.setPen(QPen(m_theme.colors().warning, 2, Qt::DashLine));
  m_painter.setBrush(Qt::NoBrush);
  m_painter.drawRect(area.adjusted(1, 1, -1, -1));
}

/// Also of a box that is out of view, but not much farther.
QRectF TimelinePainter::boxOf(std::size_t track, const TimelineItem& item) const {
  const auto within = [this](double x) { return std::clamp(x, -m_width, 2 * m_width); };
  const double left = within(m_picture.range.xAt(item.startNs, m_width));
  const double right = within(m_picture.range.xAt(item.endNs, m_width));
  return {left, m_picture.stack.rowTop(track, item.row), right - left, m_picture.stack.rowHeight(track, item.row)};
}

/// From where the selected ops run forward to where their gradients are made, over the boxes.
void TimelinePainter::paintPassLinks(std::size_t track) {
  if (m_picture.selection.isEmpty()) return;
  const bool sticks = m_picture.stack.sticks(track);
  const double covered = m_picture.stack.pinnedBottom();
  if (!sticks) m_painter.setClipRect(QRectF(0, covered, m_width, m_height - covered));
  const auto& items = tracks()[track].items;
  for (const auto& [forward, backward] : m_picture.passLinks[track]) {
    if (!isSelected(items[forward]) && !isSelected(items[backward])) continue;
    if (!m_picture.stack.tracks().isShown(track, items[forward].row) ||
        !m_picture.stack.tracks().isShown(track, items[backward].row))
      continue;
    const QRectF from = boxOf(track, items[forward]);
    const QRectF to = boxOf(track, items[backward]);
    const bool isPassed = std::max(from.right(), to.right()) < 0 || std::min(from.left(), to.left()) > m_width;
    const double lift = std::max(from.top() - m_picture.stack.top(track) - TimelineStack::kHeadHeightPx, kLeastLiftPx);
    if (!isPassed) paintCurve(from, to, lift);
  }
  m_painter.setClipping(false);
}

/// A bow that is so high at most, on a wider one of the ground, so that it is seen on any box; an arrow at its end.
void TimelinePainter::paintCurve(const QRectF& from, const QRectF& to, double lift) {
  constexpr double kControlShare = 4.0 / 3.0;  // a cubic comes three quarters near to its control points
  constexpr double kArrowPx = 5.0;
  const QPointF start(from.center().x(), from.top() + 2);
  const QPointF end(to.center().x(), to.top() + 2);
  const double high = std::min(start.y(), end.y()) - kControlShare * lift;
  QPainterPath path(start);
  path.cubicTo(QPointF(start.x(), high), QPointF(end.x(), high), end);
  m_painter.setRenderHint(QPainter::Antialiasing);
  m_painter.setBrush(Qt::NoBrush);
  m_painter.strokePath(path, QPen(m_theme.colors().base, 4.0));
  m_painter.strokePath(path, QPen(m_theme.colors().accent, 1.6));
  m_painter.setPen(Qt::NoPen);
  m_painter.setBrush(m_theme.colors().accent);
  m_painter.drawPolygon(
      QPolygonF({end, end + QPointF(-kArrowPx / 1.5, -kArrowPx), end + QPointF(kArrowPx / 1.5, -kArrowPx)}));
}

/// A label in a lane below the ruler, with a faint band over the tracks that it is about.
void TimelinePainter::paintNotes() {
  const ThemeColors& colors = m_theme.colors();
  for (const PlacedNote& placed : m_picture.notes) {
    const QRectF label = noteArea(m_picture.stack, m_picture.range, m_width, placed);
    if (label.right() < 0 || label.left() > m_width) continue;
    paintNoteBand(placed.note, label);
    const QColor ground = mixed(colors.note, colors.base, 0.35);
    m_painter.fillRect(label, ground);
    const double left = std::max(label.left(), 0.0);
    const QRectF text(left + 4, label.top(), std::max(label.right(), left + roomBehind(placed)) - left - 6,
                      label.height());
    m_painter.setFont(scaledFont(0.85));
    m_painter.setPen(text.right() > label.right() ? colors.text : textOn(ground));
    m_painter.drawText(
        text, Qt::AlignVCenter | Qt::AlignLeft,
        QFontMetricsF(m_painter.font()).elidedText(toQt(placed.note.text), Qt::ElideRight, text.width()));
  }
}

/// In pixels, to the next note of the lane: a short one may write there.
double TimelinePainter::roomBehind(const PlacedNote& placed) const {
  double endX = m_width;
  for (const PlacedNote& other : m_picture.notes)
    if (other.lane == placed.lane && other.note.startNs > placed.note.startNs)
      endX = std::min(endX, m_picture.range.xAt(other.note.startNs, m_width));
  return endX - std::max(m_picture.range.xAt(placed.note.startNs, m_width), 0.0);
}

void TimelinePainter::paintNoteBand(const StretchNote& note, const QRectF& label) {
  QColor fill = m_theme.colors().note;
  fill.setAlpha(26);
  for (const std::size_t track : tracksOf(m_picture.stack.tracks(), note)) {
    QRectF band(label.left(), m_picture.stack.top(track) + TimelineStack::kHeadHeightPx, label.width(),
                m_picture.stack.trackHeight(track) - TimelineStack::kHeadHeightPx);
    if (!m_picture.stack.sticks(track)) band.setTop(std::max(band.top(), m_picture.stack.pinnedBottom()));
    if (band.height() <= 0) continue;
    m_painter.fillRect(band, fill);
    m_painter.setPen(QPen(m_theme.colors().note, 1, Qt::DotLine));
    for (const double x : {band.left(), band.right()})
      m_painter.drawLine(QPointF(x, band.top()), QPointF(x, band.bottom()));
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
  const double top = m_picture.stack.rulerTop();
  double bottom = top + TimelineStack::kRulerHeightPx;
  for (const auto& [track, row] : area.rows) {
    QRectF band(left, m_picture.stack.rowTop(track, row), right - left, m_picture.stack.rowHeight(track, row));
    if (!m_picture.stack.sticks(track)) band.setTop(std::max(band.top(), m_picture.stack.pinnedBottom()));
    if (band.height() > 0) m_painter.fillRect(band, fill);
    bottom = std::max(bottom, band.bottom());
  }
  m_painter.setPen(QPen(m_theme.colors().accent, 1));
  for (const double x : {left, right}) m_painter.drawLine(QPointF(x, top), QPointF(x, bottom));
  paintAreaText(left, right);
}

void TimelinePainter::paintAreaText(double left, double right) {
  m_painter.setFont(scaledFont(0.9, QFont::DemiBold));
  const double textWidth = QFontMetricsF(m_painter.font()).horizontalAdvance(m_picture.areaText) + 12;
  const QRectF ground(std::clamp((left + right - textWidth) / 2, 0.0, std::max(0.0, m_width - textWidth)),
                      m_picture.stack.rulerTop() + 1, textWidth, TimelineStack::kRulerHeightPx - 2);
  m_painter.fillRect(ground, m_theme.colors().accent);
  m_painter.setPen(m_theme.colors().onAccent);
  m_painter.drawText(ground, Qt::AlignCenter, m_picture.areaText);
}

}  // namespace fuseline::ui
