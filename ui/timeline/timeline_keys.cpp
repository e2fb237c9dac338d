// Keys to what the view does.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timeline/timeline_keys.h"

#include "ui/timeline/timeline_selection.h"
#include "ui/timeline/timeline_view.h"

#include <QCursor>
#include <QKeyEvent>

#include <algorithm>
#include <optional>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr double kZoomStep = 1.25;
constexpr double kPanShare = 0.15;

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

TimelineKeys::TimelineKeys(TimelineView& view) : QObject(&view), m_view(view) { view.installEventFilter(this); }

/// Shortcuts of the window leave the view's keys to it.
bool TimelineKeys::eventFilter(QObject*, QEvent* event) {
  const bool isKey = event->type() == QEvent::KeyPress;
  if (!isKey && event->type() != QEvent::ShortcutOverride) return false;
  if (!isOwn(static_cast<QKeyEvent&>(*event)) || (isKey && m_view.tracks().isEmpty())) return false;
  if (isKey)
    press(static_cast<QKeyEvent&>(*event));
  else
    event->accept();
  return true;
}

bool TimelineKeys::isOwn(int key) const {
  static constexpr int kKeys[] = {Qt::Key_W,         Qt::Key_S,    Qt::Key_A, Qt::Key_D,      Qt::Key_Plus,
                                  Qt::Key_Minus,     Qt::Key_Home, Qt::Key_F, Qt::Key_Return, Qt::Key_Enter,
                                  Qt::Key_Backspace, Qt::Key_R,    Qt::Key_Q, Qt::Key_Space,  Qt::Key_P,
                                  Qt::Key_H,         Qt::Key_F2,   Qt::Key_N, Qt::Key_Slash};
  if (key == Qt::Key_Escape) return m_view.area().has_value();
  return moveOf(key) || std::ranges::find(kKeys, key) != std::end(kKeys);
}

/// With Alt, arrow keys move the track.
bool TimelineKeys::isOwn(const QKeyEvent& event) const {
  if (event.matches(QKeySequence::Find)) return true;
  const Qt::KeyboardModifiers modifiers = event.modifiers() & ~(Qt::ShiftModifier | Qt::KeypadModifier);
  if (modifiers == Qt::AltModifier) return event.key() == Qt::Key_Up || event.key() == Qt::Key_Down;
  return modifiers == Qt::NoModifier && isOwn(event.key());
}

void TimelineKeys::press(const QKeyEvent& event) {
  const int key = event.key();
  if (event.matches(QKeySequence::Find) || key == Qt::Key_Slash) return Q_EMIT findWanted();
  if (key == Qt::Key_F2) return pinTip();
  if (handleTrack(key, event.modifiers())) return;
  if (!handleView(key) && !handleWalk(key)) handleArea(key);
}

bool TimelineKeys::handleView(int key) {
  const TimelineItem* const current = m_view.currentItem();
  const TimelineRange& range = m_view.zoom().range();
  const double middleNs = current ? (current->startNs + current->endNs) / 2 : (range.startNs() + range.endNs()) / 2;
  switch (key) {
    case Qt::Key_W:
    case Qt::Key_Plus: m_view.zoom().zoom(kZoomStep, middleNs); break;
    case Qt::Key_S:
    case Qt::Key_Minus: m_view.zoom().zoom(1.0 / kZoomStep, middleNs); break;
    case Qt::Key_A: m_view.zoom().pan(-kPanShare); break;
    case Qt::Key_D: m_view.zoom().pan(kPanShare); break;
    case Qt::Key_Home: m_view.zoom().jumpToAll(); break;
    case Qt::Key_F: showSelection(); break;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (current) m_view.zoom().jumpTo(current->startNs, current->endNs);
      break;
    case Qt::Key_Backspace: m_view.zoom().back(); break;
    default: return false;
  }
  m_view.update();
  return true;
}

/// All boxes of the selected ops; everything where none is selected.
void TimelineKeys::showSelection() {
  double startNs = m_view.zoom().totalNs();
  double endNs = 0.0;
  for (const TimelineTrack& track : m_view.tracks().all())
    for (const TimelineItem& item : track.items)
      if (isSelected(item, m_view.selection().ids())) {
        startNs = std::min(startNs, item.startNs);
        endNs = std::max(endNs, item.endNs);
      }
  endNs > startNs ? m_view.zoom().jumpTo(startNs, endNs) : m_view.zoom().jumpToAll();
}

/// Starts at the first step.
bool TimelineKeys::handleWalk(int key) {
  const std::optional<TimelineMove> move = moveOf(key);
  if (!move) return false;
  const std::optional<TimelinePlace> from = m_view.cursor();
  if (const auto next = from ? neighbourOf(m_view.tracks(), *from, *move) : firstStep(m_view.tracks()))
    m_view.goTo(*next);
  return true;
}

void TimelineKeys::handleArea(int key) {
  switch (key) {
    case Qt::Key_R: return takeBox();
    case Qt::Key_N: return takeNote();
    case Qt::Key_Q: return Q_EMIT sumsToggled();
    case Qt::Key_Escape: return m_view.setArea(std::nullopt);
    default: return;
  }
}

bool TimelineKeys::handleTrack(int key, Qt::KeyboardModifiers modifiers) {
  const std::optional<std::size_t> track = m_view.currentTrack();
  const bool moves = modifiers.testFlag(Qt::AltModifier);
  if (!track || (!moves && key != Qt::Key_Space && key != Qt::Key_P && key != Qt::Key_H)) return false;
  m_view.arrange([&](ArrangedTracks& tracks) {
    switch (key) {
      case Qt::Key_Space: return tracks.setFolded(*track, !tracks.isFolded(*track));
      case Qt::Key_P: return tracks.setPinned(*track, !tracks.isPinned(*track));
      case Qt::Key_H: return tracks.setShown(*track, false);
      default: tracks.move(*track, key == Qt::Key_Up ? -1 : 1);
    }
  });
  return true;
}

/// Without an area, of the current box.
void TimelineKeys::takeNote() {
  if (!m_view.area()) takeBox();
  if (m_view.area()) Q_EMIT noteWanted();
}

/// The area of the current box, or else of the first one that is selected.
void TimelineKeys::takeBox() {
  const ArrangedTracks& tracks = m_view.tracks();
  const std::optional<TimelinePlace> place =
      m_view.cursor() ? m_view.cursor() : firstSelected(tracks, m_view.selection().ids());
  if (place) m_view.setArea(areaOfBox(tracks, place->track, tracks.all()[place->track].items[place->item]));
}

/// Pins the details of the box under the pointer, or of the current one.
void TimelineKeys::pinTip() {
  const QPoint pointer = m_view.mapFromGlobal(QCursor::pos());
  const auto found = m_view.underMouse() ? m_view.hits().cellAt(pointer) : std::nullopt;
  if (found) {
    const QString& title = m_view.tracks().all()[found->first].items[found->second.first].label;
    return Q_EMIT pinWanted(m_view.hits().tipAt(pointer), title, pointer);
  }
  if (!m_view.cursor()) return;
  const QRectF area = m_view.areaOf(m_view.cursor()->track, m_view.cursor()->item);
  Q_EMIT pinWanted(m_view.currentItem()->tip, m_view.currentItem()->label, area.bottomLeft().toPoint());
}

}  // namespace fuseline::ui
