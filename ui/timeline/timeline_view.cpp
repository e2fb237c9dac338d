// The widget of a timeline.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timeline/timeline_view.h"

#include "ui/timeline/timeline_selection.h"

#include "ui/canvas/pinch.h"
#include "ui/theme/format.h"
#include "ui/timeline/timeline_painter.h"
#include "ui/widgets/view_events.h"

#include <QCursor>
#include <QKeyEvent>
#include <QPainter>

#include <algorithm>
#include <cmath>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr double kZoomStep = 1.25;
constexpr double kPanShare = 0.15;
constexpr double kMarginShare = 0.08;
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
  connect(&session, &Session::selectionChanged, this, &TimelineView::followSelection);
  connect(&theme, &Theme::changed, this, qOverload<>(&QWidget::update));
}

void TimelineView::setTracks(std::vector<TimelineTrack> tracks) {
  double totalNs = 0.0;
  for (const TimelineTrack& track : tracks) totalNs = std::max(totalNs, track.endNs);
  m_stack.setTracks(std::move(tracks));
  m_links = this->tracks().size() < 2 ? decltype(m_links)() : sameWork(this->tracks()[0], this->tracks()[1]);
  m_passLinks.clear();
  for (const TimelineTrack& track : this->tracks()) m_passLinks.push_back(acrossPasses(track));
  m_matches.clear();
  m_cursor.reset();
  const double before = std::exchange(m_totalNs, totalNs);
  if (totalNs != before) {
    m_range.setTotal(totalNs * kRoomBehind);
    m_earlier.clear();
  }
  if (m_area && (totalNs != before || !fits(m_stack, *m_area))) setArea(std::nullopt);
  followStack();
  Q_EMIT tracksChanged();
}

/// How high it is, and what a screen reader says of it.
void TimelineView::followStack() {
  QStringList summaries;
  for (const std::size_t track : m_stack.order()) {
    QString summary = tracks()[track].name + QStringLiteral(": ") + tracks()[track].summary;
    if (m_stack.isPinned(track)) summary += tr(", pinned");
    if (m_stack.isFolded(track)) summary += tr(", folded");
    summaries.append(summary);
  }
  setAccessibleDescription(summaries.join(QStringLiteral("; ")));
  setMinimumHeight(sizeHint().height());
  updateGeometry();
  followScroll();
  update();
}

void TimelineView::setNotes(const std::vector<StretchNote>& notes) {
  m_notes = placeNotes(notes);
  m_stack.setNoteLanes(numLanes(m_notes));
  followStack();
}

void TimelineView::setMatches(std::vector<TimelinePlace> matches) {
  m_matches = std::move(matches);
  std::ranges::sort(m_matches);
  update();
}

void TimelineView::arrange(const std::function<void(TimelineStack&)>& change) {
  change(m_stack);
  dropHidden();
  followStack();
  Q_EMIT arrangementChanged();
}

/// The current box and the area are of rows that are shown.
void TimelineView::dropHidden() {
  if (m_cursor && !m_stack.isShown(m_cursor->track, currentItem()->row)) m_cursor.reset();
  if (!m_area || fits(m_stack, *m_area)) return;
  TimelineArea area = *m_area;
  std::erase_if(area.rows, [this](const auto& row) { return !m_stack.isShown(row.first, row.second); });
  setArea(area.rows.empty() ? std::nullopt : std::optional(std::move(area)));
}

/// In a scroll area, what of it is in view.
void TimelineView::followScroll() {
  const QWidget* viewport = parentWidget();
  m_stack.setScroll(-std::min(0, y()), viewport ? viewport->height() : height());
}

void TimelineView::moveEvent(QMoveEvent* event) {
  QWidget::moveEvent(event);
  followScroll();
  update();
}

void TimelineView::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  followScroll();
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
  const std::optional<std::size_t> track = m_stack.trackAt(position.y());
  if (!track) return std::nullopt;
  for (const TimelineCell& cell : cellsInView(tracks()[*track], m_range, width()))
    if (m_stack.isShown(*track, tracks()[*track].items[cell.first].row) &&
        m_stack.areaOf(*track, cell).adjusted(-kReachPx, 0, kReachPx, 0).contains(position))
      return std::pair(*track, cell);
  return std::nullopt;
}

const PlacedNote* TimelineView::noteAt(QPointF position) const {
  for (const PlacedNote& placed : m_notes)
    if (noteArea(m_stack, m_range, width(), placed).contains(position)) return &placed;
  return nullptr;
}

std::optional<std::size_t> TimelineView::headAt(QPointF position) const {
  const std::optional<std::size_t> track = m_stack.trackAt(position.y());
  return track && m_stack.isInHead(*track, position.y()) ? track : std::nullopt;
}

/// Track of the current box, or the first one.
std::optional<std::size_t> TimelineView::currentTrack() const {
  if (m_cursor) return m_cursor->track;
  return m_stack.order().empty() ? std::nullopt : std::optional(m_stack.order().front());
}

QString TimelineView::headTipAt(std::size_t track, QPointF position) const {
  if (m_stack.foldArea(track).contains(position))
    return m_stack.isFolded(track) ? tr("Unfold the track (Space)") : tr("Fold the track (Space)");
  if (m_stack.pinArea(track, width()).contains(position))
    return m_stack.isPinned(track) ? tr("Unpin the track (P)") : tr("Pin the track to the top (P)");
  return tr("Drag up or down to move the track (Alt+Up, Alt+Down)");
}

QString TimelineView::tipAt(QPointF position) const {
  if (const PlacedNote* placed = noteAt(position)) return toQt(stretchNoteLine(placed->note)).toHtmlEscaped();
  if (const auto track = headAt(position)) return headTipAt(*track, position);
  const auto found = cellAt(position);
  if (!found) return {};
  const auto& [track, cell] = *found;
  if (!cell.isSeveral()) return tracks()[track].items[cell.first].tip;
  const TimelineItem& first = tracks()[track].items[cell.first];
  const TimelineItem& last = tracks()[track].items[cell.last];
  return tr("<b>%1 too short to show separately</b><br>from %2 to %3; double-click to zoom in")
      .arg(cell.last - cell.first + 1)
      .arg(first.label.toHtmlEscaped(), last.label.toHtmlEscaped());
}

bool TimelineView::isSelected(const TimelineItem& item) const {
  return std::ranges::any_of(item.owners, [&](const QString& id) { return m_session.selection().contains(id); });
}

/// Brings a selection made elsewhere into view.
void TimelineView::followSelection() {
  update();
  const std::optional<TimelinePlace> place = hiddenSelection(m_stack, m_range, m_session.selection());
  if (!place) return;
  m_range.reveal(itemAt(*place).startNs, itemAt(*place).endNs);
  Q_EMIT revealed(areaOf(place->track, place->item).toAlignedRect());
}

// ----------------------------------------------------------------------------------------------------------- commands

bool TimelineView::isOwnKey(int key) const {
  static constexpr int kKeys[] = {Qt::Key_W,         Qt::Key_S,    Qt::Key_A, Qt::Key_D,      Qt::Key_Plus,
                                  Qt::Key_Minus,     Qt::Key_Home, Qt::Key_F, Qt::Key_Return, Qt::Key_Enter,
                                  Qt::Key_Backspace, Qt::Key_R,    Qt::Key_Q, Qt::Key_Space,  Qt::Key_P,
                                  Qt::Key_H,         Qt::Key_F2,   Qt::Key_N, Qt::Key_Slash};
  if (key == Qt::Key_Escape) return m_area.has_value();
  return moveOf(key) || std::ranges::find(kKeys, key) != std::end(kKeys);
}

/// With Alt, arrow keys move the track.
bool TimelineView::isOwnKey(const QKeyEvent& event) const {
  if (event.matches(QKeySequence::Find)) return true;
  const Qt::KeyboardModifiers modifiers = event.modifiers() & ~(Qt::ShiftModifier | Qt::KeypadModifier);
  if (modifiers == Qt::AltModifier) return event.key() == Qt::Key_Up || event.key() == Qt::Key_Down;
  return modifiers == Qt::NoModifier && isOwnKey(event.key());
}

void TimelineView::goTo(TimelinePlace place) {
  m_cursor = place;
  const TimelineItem& item = itemAt(place);
  m_range.reveal(item.startNs, std::min(item.endNs, item.startNs + m_range.lengthNs()));
  m_session.select(QSet<QString>(item.owners.begin(), item.owners.end()));
  Q_EMIT revealed(areaOf(place.track, place.item).toAlignedRect());
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
  if (const auto next = m_cursor ? neighbourOf(m_stack, *m_cursor, *move) : firstStep(m_stack)) goTo(*next);
  return true;
}

bool TimelineView::handleArea(int key) {
  switch (key) {
    case Qt::Key_R: takeBox(); return true;
    case Qt::Key_N: takeNote(); return true;
    case Qt::Key_Q: Q_EMIT sumsToggled(); return true;
    case Qt::Key_Escape: setArea(std::nullopt); return true;
    default: return false;
  }
}

bool TimelineView::handleTrack(int key, Qt::KeyboardModifiers modifiers) {
  const std::optional<std::size_t> track = currentTrack();
  const bool moves = modifiers.testFlag(Qt::AltModifier);
  if (!track || (!moves && key != Qt::Key_Space && key != Qt::Key_P && key != Qt::Key_H)) return false;
  arrange([&](TimelineStack& stack) {
    switch (key) {
      case Qt::Key_Space: return stack.setFolded(*track, !stack.isFolded(*track));
      case Qt::Key_P: return stack.setPinned(*track, !stack.isPinned(*track));
      case Qt::Key_H: return stack.setShown(*track, false);
      default: stack.move(*track, key == Qt::Key_Up ? -1 : 1);
    }
  });
  return true;
}

/// Pins the details of the box under the pointer, or of the current one.
void TimelineView::pinTip() {
  const QPoint pointer = mapFromGlobal(QCursor::pos());
  const auto found = underMouse() ? cellAt(pointer) : std::nullopt;
  if (found) {
    const QString& title = tracks()[found->first].items[found->second.first].label;
    return Q_EMIT pinWanted(tipAt(pointer), title, pointer);
  }
  if (!m_cursor) return;
  const QRectF area = areaOf(m_cursor->track, m_cursor->item);
  Q_EMIT pinWanted(currentItem()->tip, currentItem()->label, area.bottomLeft().toPoint());
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

/// Without an area, of the current box.
void TimelineView::takeNote() {
  if (!m_area) takeBox();
  if (m_area) Q_EMIT noteWanted();
}

/// The area of the current box, or else of the first one that is selected.
void TimelineView::takeBox() {
  const std::optional<TimelinePlace> place = m_cursor ? m_cursor : firstSelected(m_stack, m_session.selection());
  if (place) setArea(areaOfBox(m_stack, place->track, itemAt(*place)));
}

void TimelineView::keyPressEvent(QKeyEvent* event) {
  if (m_stack.isEmpty() || !isOwnKey(*event)) return QWidget::keyPressEvent(event);
  const int key = event->key();
  if (event->matches(QKeySequence::Find) || key == Qt::Key_Slash) return Q_EMIT findWanted();
  if (key == Qt::Key_F2) return pinTip();
  if (handleTrack(key, event->modifiers())) return;
  if (!handleView(key) && !handleWalk(key)) handleArea(key);
}

bool TimelineView::event(QEvent* event) {
  if (const std::optional<Pinch> pinch = pinchIn(*event); pinch && !m_stack.isEmpty()) {
    m_range.zoom(pinch->factor, timeAt(pinch->position.x()));
    update();
    return true;
  }
  if (event->type() == QEvent::ShortcutOverride && isOwnKey(static_cast<QKeyEvent&>(*event))) event->accept();
  return answerToolTip(*event, *this, [this](QPoint place) { return tipAt(place); }) || QWidget::event(event);
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
                                .passLinks = m_passLinks,
                                .matches = m_matches,
                                .selection = m_session.selection(),
                                .cursor = hasFocus() ? m_cursor : std::nullopt,
                                .notes = m_notes,
                                .area = m_area,
                                .areaText = measuredText(),
                                .dropY = dropY()};
  TimelinePainter(painter, picture, QSizeF(size()), m_theme).paint();
}

}  // namespace fuseline::ui
