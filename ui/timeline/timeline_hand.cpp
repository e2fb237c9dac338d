// Events of the mouse to what the view does.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timeline/timeline_hand.h"

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

TimelineHand::TimelineHand(TimelineView& view) : QObject(&view), m_view(view) { view.installEventFilter(this); }

bool TimelineHand::eventFilter(QObject*, QEvent* event) {
  if (m_view.tracks().isEmpty()) return false;
  switch (event->type()) {
    case QEvent::MouseButtonPress: return press(static_cast<QMouseEvent&>(*event));
    case QEvent::MouseMove: return move(static_cast<QMouseEvent&>(*event));
    case QEvent::MouseButtonRelease: return release(static_cast<QMouseEvent&>(*event));
    case QEvent::MouseButtonDblClick: return doubleClick(static_cast<QMouseEvent&>(*event));
    case QEvent::Wheel: return turn(static_cast<QWheelEvent&>(*event));
    case QEvent::ContextMenu: return openMenu(static_cast<QContextMenuEvent&>(*event));
    default: return false;
  }
}

bool TimelineHand::press(const QMouseEvent& event) {
  if (event.button() != Qt::LeftButton) return false;
  const bool measures = event.modifiers().testFlag(Qt::ShiftModifier);
  const std::optional<std::size_t> head = measures ? std::nullopt : m_view.hits().headAt(event.position());
  if (head && pressHead(*head, event.position())) return true;
  m_drag = Drag{.kind = measures ? DragKind::Measure
                        : head   ? DragKind::Track
                                 : DragKind::Pan,
                .from = event.position(),
                .to = event.position(),
                .fromNs = m_view.timeAt(event.position().x()),
                .track = head.value_or(0)};
  return true;
}

/// On its triangle or its pin.
bool TimelineHand::pressHead(std::size_t track, QPointF position) {
  const bool folds = m_view.stack().foldArea(track).contains(position);
  if (!folds && !m_view.stack().pinArea(track, m_view.width()).contains(position)) return false;
  m_view.arrange([&](ArrangedTracks& tracks) {
    folds ? tracks.setFolded(track, !tracks.isFolded(track)) : tracks.setPinned(track, !tracks.isPinned(track));
  });
  return true;
}

bool TimelineHand::move(const QMouseEvent& event) {
  if (!m_drag) return false;
  m_drag->to = event.position();
  const QPointF moved = m_drag->to - m_drag->from;
  if (!m_drag->hasMoved && std::max(std::abs(moved.x()), std::abs(moved.y())) < kClickSlackPx) return true;
  m_drag->hasMoved = true;
  const double toNs = m_view.timeAt(m_drag->to.x());
  switch (m_drag->kind) {
    case DragKind::Pan: m_view.zoom().panNs(m_drag->fromNs - toNs); break;
    case DragKind::Measure:
      m_view.previewArea(areaBetween(m_view.stack(), {m_drag->fromNs, std::clamp(toNs, 0.0, m_view.zoom().totalNs())},
                                     {m_drag->from.y(), m_drag->to.y()}));
      break;
    case DragKind::Track: break;  // until it is dropped, only a line moves
  }
  m_view.update();
  return true;
}

bool TimelineHand::release(const QMouseEvent& event) {
  const std::optional<Drag> drag = std::exchange(m_drag, std::nullopt);
  if (!drag) return false;
  drag->hasMoved ? drop(*drag) : click(event.position());
  m_view.update();
  return true;
}

/// The range of a note whose tracks are hidden is not chosen.
void TimelineHand::click(QPointF position) {
  if (const PlacedNote* placed = m_view.hits().noteAt(position)) {
    TimelineArea area = areaOf(m_view.tracks(), placed->note);
    if (!area.rows.empty()) m_view.setArea(std::move(area));
    return;
  }
  if (m_view.area()) m_view.setArea(std::nullopt);
  if (const auto found = m_view.hits().cellAt(position))
    m_view.goTo({found->first, found->second.first});
  else
    m_view.selection().select({});
}

void TimelineHand::drop(const Drag& drag) {
  if (drag.kind == DragKind::Measure) m_view.setArea(m_view.area());
  if (drag.kind != DragKind::Track) return;
  const int places = m_view.stack().placesTo(drag.track, drag.to.y());
  m_view.arrange([&](ArrangedTracks& tracks) { tracks.move(drag.track, places); });
}

std::optional<double> TimelineHand::dropY() const {
  if (!m_drag || m_drag->kind != DragKind::Track || !m_drag->hasMoved) return std::nullopt;
  const int by = m_view.stack().placesTo(m_drag->track, m_drag->to.y());
  if (by == 0) return std::nullopt;
  const auto here = std::ranges::find(m_view.tracks().order(), m_drag->track);
  const std::size_t target = *(here + by);
  return m_view.stack().top(target) + (by > 0 ? m_view.stack().trackHeight(target) : 0.0);
}

bool TimelineHand::openMenu(const QContextMenuEvent& event) {
  const bool isByKey = event.reason() == QContextMenuEvent::Keyboard;
  QMenu menu(&m_view);
  fillTracksMenu(menu, m_view, isByKey ? m_view.currentTrack() : m_view.stack().trackAt(event.pos().y()));
  menu.exec(event.globalPos());
  return true;
}

bool TimelineHand::doubleClick(const QMouseEvent& event) {
  if (const auto head = m_view.hits().headAt(event.position())) {
    m_view.arrange([&](ArrangedTracks& tracks) { tracks.setFolded(*head, !tracks.isFolded(*head)); });
    return true;
  }
  const auto found = m_view.hits().cellAt(event.position());
  if (!found) return true;
  const auto& items = m_view.tracks().all()[found->first].items;
  m_view.zoom().jumpTo(items[found->second.first].startNs, items[found->second.last].endNs);
  m_view.update();
  return true;
}

/// Where the rows need a scroll bar, the plain wheel is for it.
bool TimelineHand::turn(QWheelEvent& event) {
  const bool isSideways = event.angleDelta().x() != 0 || event.modifiers().testFlag(Qt::ShiftModifier);
  const QWidget* viewport = m_view.parentWidget();
  const bool scrolls = viewport && m_view.height() > viewport->height();
  if (!isSideways && scrolls && !event.modifiers().testFlag(Qt::ControlModifier)) return false;
  scrollAndZoom(event);
  event.accept();
  m_view.update();
  return true;
}

void TimelineHand::scrollAndZoom(const QWheelEvent& event) {
  constexpr double kNotch = 120.0;
  const QPoint turned = event.angleDelta();
  if (turned.x() != 0) return m_view.zoom().pan(-turned.x() / kNotch * kWheelPanShare);
  const double notches = turned.y() / kNotch;
  if (event.modifiers().testFlag(Qt::ShiftModifier)) return m_view.zoom().pan(-notches * kWheelPanShare);
  m_view.zoom().zoom(std::pow(kWheelZoom, notches), m_view.timeAt(event.position().x()));
}

}  // namespace fuseline::ui
