// The widget of a timeline.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timeline/timeline_view.h"

#include "ui/canvas/pinch.h"
#include "ui/theme/format.h"
#include "ui/timeline/timeline_painter.h"
#include "ui/timeline/timeline_selection.h"
#include "ui/widgets/view_events.h"

#include <QPainter>

#include <algorithm>
#include <cmath>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr int kEmptyHeightPx = 120;

}  // namespace

TimelineView::TimelineView(Selection& selection, const Theme& theme, QWidget* parent)
    : QWidget(parent),
      m_selection(selection),
      m_theme(theme),
      m_hand(new TimelineHand(*this)),
      m_keys(new TimelineKeys(*this)) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Timeline"));
  connect(&selection, &Selection::changed, this, &TimelineView::followSelection);
  connect(&theme, &Theme::changed, this, qOverload<>(&QWidget::update));
}

void TimelineView::setTracks(std::vector<TimelineTrack> tracks) {
  double totalNs = 0.0;
  for (const TimelineTrack& track : tracks) totalNs = std::max(totalNs, track.endNs);
  m_stack.arrange([&](ArrangedTracks& arranged) { arranged.setTracks(std::move(tracks)); });
  const std::vector<TimelineTrack>& all = this->tracks().all();
  m_links = all.size() < 2 ? decltype(m_links)() : sameWork(all[0], all[1]);
  m_passLinks.clear();
  for (const TimelineTrack& track : all) m_passLinks.push_back(acrossPasses(track));
  m_matches.clear();
  m_cursor.reset();
  const bool isAsLong = !m_zoom.setTotal(totalNs);
  if (m_area && (!isAsLong || !fits(this->tracks(), *m_area))) setArea(std::nullopt);
  followStack();
  Q_EMIT tracksChanged();
}

/// How high it is, and what a screen reader says of it.
void TimelineView::followStack() {
  QStringList summaries;
  for (const std::size_t track : tracks().order()) {
    QString summary = tracks().all()[track].name + QStringLiteral(": ") + tracks().all()[track].summary;
    if (tracks().isPinned(track)) summary += tr(", pinned");
    if (tracks().isFolded(track)) summary += tr(", folded");
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

void TimelineView::arrange(const std::function<void(ArrangedTracks&)>& change) {
  m_stack.arrange(change);
  dropHidden();
  followStack();
  Q_EMIT arrangementChanged();
}

/// The current box and the area are of rows that are shown.
void TimelineView::dropHidden() {
  if (m_cursor && !tracks().isShown(m_cursor->track, currentItem()->row)) m_cursor.reset();
  if (!m_area || fits(tracks(), *m_area)) return;
  TimelineArea area = *m_area;
  std::erase_if(area.rows, [this](const auto& row) { return !tracks().isShown(row.first, row.second); });
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
  return {400, tracks().isEmpty() ? kEmptyHeightPx : static_cast<int>(std::ceil(m_stack.heightPx()))};
}

TimelineHits TimelineView::hits() const {
  return {.stack = m_stack, .range = m_zoom.range(), .notes = m_notes, .widthPx = static_cast<double>(width())};
}

QRectF TimelineView::areaOf(std::size_t track, std::size_t item) const {
  return m_stack.areasOf(track, m_zoom.range(), width())[item];
}

std::optional<std::size_t> TimelineView::currentTrack() const {
  if (m_cursor) return m_cursor->track;
  return tracks().order().empty() ? std::nullopt : std::optional(tracks().order().front());
}

/// Brings a selection made elsewhere into view.
void TimelineView::followSelection() {
  update();
  const std::optional<TimelinePlace> place = hiddenSelection(tracks(), m_zoom.range(), m_selection.ids());
  if (!place) return;
  m_zoom.reveal(itemAt(*place).startNs, itemAt(*place).endNs);
  Q_EMIT revealed(areaOf(place->track, place->item).toAlignedRect());
}

void TimelineView::goTo(TimelinePlace place) {
  m_cursor = place;
  const TimelineItem& item = itemAt(place);
  m_zoom.reveal(item.startNs, std::min(item.endNs, item.startNs + m_zoom.range().lengthNs()));
  m_selection.select(QSet<QString>(item.owners.begin(), item.owners.end()));
  Q_EMIT revealed(areaOf(place.track, place.item).toAlignedRect());
  update();
}

void TimelineView::setArea(std::optional<TimelineArea> area) {
  m_area = std::move(area);
  update();
  Q_EMIT areaChanged();
}

void TimelineView::takeView() {
  const TimelineRange& range = m_zoom.range();
  setArea(TimelineArea{
      .startNs = range.startNs(), .endNs = std::min(range.endNs(), m_zoom.totalNs()), .rows = tracks().rows()});
}

bool TimelineView::event(QEvent* event) {
  if (const std::optional<Pinch> pinch = pinchIn(*event); pinch && !tracks().isEmpty()) {
    m_zoom.zoom(pinch->factor, timeAt(pinch->position.x()));
    update();
    return true;
  }
  return answerToolTip(*event, *this, [this](QPoint place) { return hits().tipAt(place); }) || QWidget::event(event);
}

QString TimelineView::measuredText() const {
  if (!m_area) return {};
  QStringList parts = {tr("Δ %1").arg(formatDurationNs(m_area->lengthNs()))};
  for (const std::size_t track : m_area->tracks())
    parts.append(spanSummary(tracks().all()[track], m_area->startNs, m_area->endNs));
  return parts.join(QStringLiteral("  ·  "));
}

void TimelineView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), m_theme.colors().base);
  if (tracks().isEmpty()) return;
  const TimelinePicture picture{.stack = m_stack,
                                .range = m_zoom.range(),
                                .links = m_links,
                                .passLinks = m_passLinks,
                                .matches = m_matches,
                                .selection = m_selection.ids(),
                                .cursor = hasFocus() ? m_cursor : std::nullopt,
                                .notes = m_notes,
                                .area = m_area,
                                .areaText = measuredText(),
                                .dropY = m_hand->dropY()};
  TimelinePainter(painter, picture, QSizeF(size()), m_theme).paint();
}

}  // namespace fuseline::ui
