// The widget of a timeline.
// SPDX-License-Identifier: Apache-2.0
#include "ui/panels/timeline_view.h"

#include "ui/canvas/pinch.h"
#include "ui/panels/timeline_painter.h"
#include "ui/panels/view_events.h"
#include "ui/theme/format.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr double kZoomStep = 1.25;
constexpr double kPanShare = 0.15;
constexpr double kMarginShare = 0.08;
constexpr double kClickSlackPx = 4.0;
constexpr double kRoomBehind = 1.01;  // so that the last boxes do not touch the border
constexpr int kEmptyHeightPx = 120;

std::optional<TimelineMove> moveOf(int key) {
  switch (key) {
    case Qt::Key_Left:
    case Qt::Key_Comma: return TimelineMove::Before;
    case Qt::Key_Right:
    case Qt::Key_Period: return TimelineMove::Behind;
    case Qt::Key_Up: return TimelineMove::Above;
    case Qt::Key_Down: return TimelineMove::Below;
    default: return std::nullopt;
  }
}

}  // namespace

TimelineView::TimelineView(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent), m_session(session), m_theme(theme) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Timeline"));
  connect(&session, &Session::selectionChanged, this, qOverload<>(&QWidget::update));
  connect(&theme, &Theme::changed, this, qOverload<>(&QWidget::update));
}

void TimelineView::setTracks(std::vector<TimelineTrack> tracks) {
  double totalNs = 0.0;
  for (const TimelineTrack& track : tracks) totalNs = std::max(totalNs, track.endNs);
  m_stack.setTracks(std::move(tracks));
  m_links = this->tracks().size() < 2 ? decltype(m_links)() : sameWork(this->tracks()[0], this->tracks()[1]);
  m_cursor.reset();
  const double before = std::exchange(m_totalNs, totalNs);
  if (totalNs != before) {
    m_range.setTotal(totalNs * kRoomBehind);
    m_earlier.clear();
  }
  if (m_area && (totalNs != before || !fits(*m_area))) setArea(std::nullopt);
  QStringList summaries;
  for (const TimelineTrack& track : this->tracks()) summaries.append(track.name + QStringLiteral(": ") + track.summary);
  setAccessibleDescription(summaries.join(QStringLiteral("; ")));
  setMinimumHeight(sizeHint().height());
  updateGeometry();
  update();
}

QSize TimelineView::sizeHint() const {
  return {400, m_stack.isEmpty() ? kEmptyHeightPx : static_cast<int>(std::ceil(m_stack.heightPx()))};
}

// ------------------------------------------------------------------------------------------------------------- places

QRectF TimelineView::areaOf(std::size_t track, std::size_t item) const {
  return m_stack.areasOf(track, m_range, width())[item];
}

const TimelineItem* TimelineView::currentItem() const { return m_cursor ? &itemAt(*m_cursor) : nullptr; }

std::optional<std::pair<std::size_t, TimelineCell>> TimelineView::cellAt(QPointF position) const {
  constexpr double kReachPx = 1.0;  // a box of one pixel can be met
  for (std::size_t track = 0; track < tracks().size(); ++track)
    for (const TimelineCell& cell : cellsInView(tracks()[track], m_range, width()))
      if (m_stack.areaOf(track, cell).adjusted(-kReachPx, 0, kReachPx, 0).contains(position))
        return std::pair(track, cell);
  return std::nullopt;
}

QString TimelineView::tipAt(QPointF position) const {
  const auto found = cellAt(position);
  if (!found) return {};
  const auto& [track, cell] = *found;
  if (!cell.isSeveral()) return tracks()[track].items[cell.first].tip;
  const TimelineItem& first = tracks()[track].items[cell.first];
  const TimelineItem& last = tracks()[track].items[cell.last];
  return tr("<b>%1 too short to be told apart here</b><br>from %2 to %3; a double click shows them")
      .arg(cell.last - cell.first + 1)
      .arg(first.label.toHtmlEscaped(), last.label.toHtmlEscaped());
}

bool TimelineView::isSelected(const TimelineItem& item) const {
  return std::ranges::any_of(item.owners, [&](const QString& id) { return m_session.selection().contains(id); });
}

std::optional<TimelinePlace> TimelineView::firstSelected() const {
  for (const auto& [track, row] : m_stack.rows())
    for (std::size_t item = 0; item < tracks()[track].items.size(); ++item)
      if (tracks()[track].items[item].row == row && isSelected(tracks()[track].items[item]))
        return TimelinePlace{track, item};
  return std::nullopt;
}

bool TimelineView::fits(const TimelineArea& area) const {
  const auto rows = m_stack.rows();
  return std::ranges::all_of(area.rows, [&](const auto& row) { return std::ranges::find(rows, row) != rows.end(); });
}

// ----------------------------------------------------------------------------------------------------------- commands

bool TimelineView::isOwnKey(int key) const {
  static constexpr int kKeys[] = {Qt::Key_W,         Qt::Key_S,    Qt::Key_A, Qt::Key_D,      Qt::Key_Plus,
                                  Qt::Key_Minus,     Qt::Key_Home, Qt::Key_F, Qt::Key_Return, Qt::Key_Enter,
                                  Qt::Key_Backspace, Qt::Key_R,    Qt::Key_Q};
  if (key == Qt::Key_Escape) return m_area.has_value();
  return moveOf(key) || std::ranges::find(kKeys, key) != std::end(kKeys);
}

void TimelineView::select(TimelinePlace place) {
  m_cursor = place;
  const TimelineItem& item = itemAt(place);
  m_range.reveal(item.startNs, std::min(item.endNs, item.startNs + m_range.lengthNs()));
  m_session.select(QSet<QString>(item.owners.begin(), item.owners.end()));
  update();
}

void TimelineView::jumpTo(double startNs, double endNs) {
  const double marginNs = (endNs - startNs) * kMarginShare;
  m_earlier.push_back(m_range);
  m_range.show(startNs - marginNs, endNs + marginNs);
  update();
}

/// All boxes of the selected ops; everything where none is selected.
void TimelineView::showSelection() {
  double startNs = m_totalNs;
  double endNs = 0.0;
  for (const TimelineTrack& track : tracks())
    for (const TimelineItem& item : track.items)
      if (isSelected(item)) {
        startNs = std::min(startNs, item.startNs);
        endNs = std::max(endNs, item.endNs);
      }
  endNs > startNs ? jumpTo(startNs, endNs) : jumpTo(0.0, m_totalNs * kRoomBehind);
}

void TimelineView::back() {
  if (m_earlier.empty()) return;
  m_range = m_earlier.back();
  m_earlier.pop_back();
  update();
}

bool TimelineView::handleView(int key) {
  const double middleNs =
      m_cursor ? (currentItem()->startNs + currentItem()->endNs) / 2 : (m_range.startNs() + m_range.endNs()) / 2;
  switch (key) {
    case Qt::Key_W:
    case Qt::Key_Plus: m_range.zoom(kZoomStep, middleNs); break;
    case Qt::Key_S:
    case Qt::Key_Minus: m_range.zoom(1.0 / kZoomStep, middleNs); break;
    case Qt::Key_A: m_range.pan(-kPanShare * m_range.lengthNs()); break;
    case Qt::Key_D: m_range.pan(kPanShare * m_range.lengthNs()); break;
    case Qt::Key_Home: jumpTo(0.0, m_totalNs * kRoomBehind); break;
    case Qt::Key_F: showSelection(); break;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (m_cursor) jumpTo(currentItem()->startNs, currentItem()->endNs);
      break;
    case Qt::Key_Backspace: back(); break;
    default: return false;
  }
  update();
  return true;
}

/// Starts at the first step.
bool TimelineView::handleWalk(int key) {
  const std::optional<TimelineMove> move = moveOf(key);
  if (!move) return false;
  if (const auto next = m_cursor ? neighbourOf(m_stack, *m_cursor, *move) : firstStep(m_stack)) select(*next);
  return true;
}

bool TimelineView::handleArea(int key) {
  switch (key) {
    case Qt::Key_R: takeBox(); return true;
    case Qt::Key_Q: Q_EMIT sumsToggled(); return true;
    case Qt::Key_Escape: setArea(std::nullopt); return true;
    default: return false;
  }
}

void TimelineView::setArea(std::optional<TimelineArea> area) {
  m_area = std::move(area);
  update();
  Q_EMIT areaChanged();
}

void TimelineView::takeView() {
  setArea(TimelineArea{
      .startNs = m_range.startNs(), .endNs = std::min(m_range.endNs(), m_totalNs), .rows = m_stack.rows()});
}

/// The area of the current box, or else of the first one that is selected.
void TimelineView::takeBox() {
  const std::optional<TimelinePlace> place = m_cursor ? m_cursor : firstSelected();
  if (place) setArea(areaOfBox(m_stack, place->track, itemAt(*place)));
}

void TimelineView::keyPressEvent(QKeyEvent* event) {
  if (m_stack.isEmpty() || !isOwnKey(event->key())) return QWidget::keyPressEvent(event);
  const int key = event->key();
  if (!handleView(key) && !handleWalk(key)) handleArea(key);
}

bool TimelineView::event(QEvent* event) {
  if (const std::optional<Pinch> pinch = pinchIn(*event); pinch && !m_stack.isEmpty()) {
    m_range.zoom(pinch->factor, timeAt(pinch->position.x()));
    update();
    return true;
  }
  takeOwnKey(*event, Qt::ShiftModifier | Qt::KeypadModifier, [this](int key) { return isOwnKey(key); });
  return answerToolTip(*event, *this, [this](QPoint place) { return tipAt(place); }) || QWidget::event(event);
}

void TimelineView::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton || m_stack.isEmpty()) return QWidget::mousePressEvent(event);
  m_drag = Drag{.from = event->position(),
                .fromNs = timeAt(event->position().x()),
                .measures = event->modifiers().testFlag(Qt::ShiftModifier)};
}

void TimelineView::mouseMoveEvent(QMouseEvent* event) {
  if (!m_drag) return QWidget::mouseMoveEvent(event);
  const double x = event->position().x();
  if (!m_drag->hasMoved && std::abs(x - m_drag->from.x()) < kClickSlackPx) return;
  m_drag->hasMoved = true;
  if (m_drag->measures)
    m_area = areaBetween(m_stack, {m_drag->fromNs, std::clamp(timeAt(x), 0.0, m_totalNs)},
                         {m_drag->from.y(), event->position().y()});
  else
    m_range.pan(m_drag->fromNs - timeAt(x));
  update();
}

void TimelineView::mouseReleaseEvent(QMouseEvent* event) {
  const std::optional<Drag> drag = std::exchange(m_drag, std::nullopt);
  if (!drag) return;
  if (drag->hasMoved && drag->measures) Q_EMIT areaChanged();
  if (drag->hasMoved) return;
  if (m_area) setArea(std::nullopt);
  if (const auto found = cellAt(event->position()))
    select({found->first, found->second.first});
  else
    m_session.select({});
  update();
}

void TimelineView::mouseDoubleClickEvent(QMouseEvent* event) {
  const auto found = cellAt(event->position());
  if (!found) return;
  const auto& items = tracks()[found->first].items;
  jumpTo(items[found->second.first].startNs, items[found->second.last].endNs);
}

void TimelineView::wheelEvent(QWheelEvent* event) {
  if (m_stack.isEmpty()) return QWidget::wheelEvent(event);
  const QPoint turned = event->angleDelta();
  const bool isSideways = turned.x() != 0 || event->modifiers().testFlag(Qt::ShiftModifier);
  const bool scrolls = parentWidget() && height() > parentWidget()->height();
  // Where the rows need a scroll bar, the plain wheel is for it.
  if (!isSideways && scrolls && !event->modifiers().testFlag(Qt::ControlModifier)) return event->ignore();
  scrollAndZoom(event);
  event->accept();
  update();
}

void TimelineView::scrollAndZoom(QWheelEvent* event) {
  constexpr double kNotch = 120.0;
  const QPoint turned = event->angleDelta();
  if (turned.x() != 0) return m_range.pan(-turned.x() / kNotch * kPanShare * m_range.lengthNs());
  const double notches = turned.y() / kNotch;
  if (event->modifiers().testFlag(Qt::ShiftModifier)) return m_range.pan(-notches * kPanShare * m_range.lengthNs());
  m_range.zoom(std::pow(kZoomStep, notches), timeAt(event->position().x()));
}

QString TimelineView::measuredText() const {
  if (!m_area) return {};
  QStringList parts = {tr("Δ %1").arg(formatDurationNs(m_area->lengthNs()))};
  for (const std::size_t track : m_area->tracks())
    parts.append(spanSummary(tracks()[track], m_area->startNs, m_area->endNs));
  return parts.join(QStringLiteral("  ·  "));
}

void TimelineView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), m_theme.colors().base);
  if (m_stack.isEmpty()) return;
  const TimelinePicture picture{.stack = m_stack,
                                .range = m_range,
                                .links = m_links,
                                .selection = m_session.selection(),
                                .cursor = hasFocus() ? m_cursor : std::nullopt,
                                .area = m_area,
                                .areaText = measuredText()};
  TimelinePainter(painter, picture, QSizeF(size()), m_theme).paint();
}

}  // namespace fuseline::ui
