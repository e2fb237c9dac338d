// Mouse handling of a timeline: select, pan, choose a time range, arrange tracks by their headers.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timeline/timeline_tracks_menu.h"
#include "ui/timeline/timeline_view.h"

#include <QContextMenuEvent>
#include <QMenu>
#include <QMouseEvent>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr double kClickSlackPx = 4.0;
constexpr double kWheelZoom = 1.25;
constexpr double kWheelPanShare = 0.15;

}  // namespace

void TimelineView::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton || m_stack.isEmpty()) return QWidget::mousePressEvent(event);
  const bool measures = event->modifiers().testFlag(Qt::ShiftModifier);
  const std::optional<std::size_t> head = measures ? std::nullopt : headAt(event->position());
  if (head && pressHead(*head, event->position())) return;
  m_drag = Drag{.kind = measures ? DragKind::Measure
                        : head   ? DragKind::Track
                                 : DragKind::Pan,
                .from = event->position(),
                .to = event->position(),
                .fromNs = timeAt(event->position().x()),
                .track = head.value_or(0)};
}

/// On its triangle or its pin.
bool TimelineView::pressHead(std::size_t track, QPointF position) {
  const bool folds = m_stack.foldArea(track).contains(position);
  if (!folds && !m_stack.pinArea(track, width()).contains(position)) return false;
  arrange([&](TimelineStack& stack) {
    folds ? stack.setFolded(track, !stack.isFolded(track)) : stack.setPinned(track, !stack.isPinned(track));
  });
  return true;
}

void TimelineView::mouseMoveEvent(QMouseEvent* event) {
  if (!m_drag) return QWidget::mouseMoveEvent(event);
  m_drag->to = event->position();
  const QPointF moved = m_drag->to - m_drag->from;
  if (!m_drag->hasMoved && std::max(std::abs(moved.x()), std::abs(moved.y())) < kClickSlackPx) return;
  m_drag->hasMoved = true;
  switch (m_drag->kind) {
    case DragKind::Pan: m_range.pan(m_drag->fromNs - timeAt(m_drag->to.x())); break;
    case DragKind::Measure:
      m_area = areaBetween(m_stack, {m_drag->fromNs, std::clamp(timeAt(m_drag->to.x()), 0.0, m_totalNs)},
                           {m_drag->from.y(), m_drag->to.y()});
      break;
    case DragKind::Track: break;  // until it is dropped, only a line moves
  }
  update();
}

void TimelineView::mouseReleaseEvent(QMouseEvent* event) {
  const std::optional<Drag> drag = std::exchange(m_drag, std::nullopt);
  if (!drag) return;
  if (drag->hasMoved) return drop(*drag);
  if (const PlacedNote* placed = noteAt(event->position())) return takeNoted(placed->note);
  if (m_area) setArea(std::nullopt);
  if (const auto found = cellAt(event->position()))
    goTo({found->first, found->second.first});
  else
    m_session.select({});
  update();
}

/// Hidden tracks have no area.
void TimelineView::takeNoted(const StretchNote& note) {
  TimelineArea area = fuseline::ui::areaOf(m_stack, note);
  if (!area.rows.empty()) setArea(std::move(area));
}

void TimelineView::drop(const Drag& drag) {
  if (drag.kind == DragKind::Measure) Q_EMIT areaChanged();
  if (drag.kind != DragKind::Track) return;
  arrange([&](TimelineStack& stack) { stack.move(drag.track, stack.placesTo(drag.track, drag.to.y())); });
}

/// Where the dragged track would go; nothing where it stays.
std::optional<double> TimelineView::dropY() const {
  if (!m_drag || m_drag->kind != DragKind::Track || !m_drag->hasMoved) return std::nullopt;
  const int by = m_stack.placesTo(m_drag->track, m_drag->to.y());
  if (by == 0) return std::nullopt;
  const auto& order = m_stack.order();
  const auto here = std::ranges::find(order, m_drag->track);
  const std::size_t target = *(here + by);
  return m_stack.top(target) + (by > 0 ? m_stack.trackHeight(target) : 0.0);
}

void TimelineView::contextMenuEvent(QContextMenuEvent* event) {
  if (m_stack.isEmpty()) return;
  const bool isByKey = event->reason() == QContextMenuEvent::Keyboard;
  QMenu menu(this);
  fillTracksMenu(menu, *this, isByKey ? currentTrack() : m_stack.trackAt(event->pos().y()));
  menu.exec(event->globalPos());
}

void TimelineView::mouseDoubleClickEvent(QMouseEvent* event) {
  if (const auto head = headAt(event->position()))
    return arrange([&](TimelineStack& stack) { stack.setFolded(*head, !stack.isFolded(*head)); });
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
  if (turned.x() != 0) return m_range.pan(-turned.x() / kNotch * kWheelPanShare * m_range.lengthNs());
  const double notches = turned.y() / kNotch;
  if (event->modifiers().testFlag(Qt::ShiftModifier))
    return m_range.pan(-notches * kWheelPanShare * m_range.lengthNs());
  m_range.zoom(std::pow(kWheelZoom, notches), timeAt(event->position().x()));
}

}  // namespace fuseline::ui
