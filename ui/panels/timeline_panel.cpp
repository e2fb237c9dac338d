// The timeline dock.
// SPDX-License-Identifier: Apache-2.0
#include "ui/panels/timeline_panel.h"

#include "ui/canvas/pinch.h"
#include "ui/models/run_notes.h"
#include "ui/panels/plot_painting.h"
#include "ui/panels/view_events.h"
#include "ui/theme/format.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>
#include <QVBoxLayout>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>

namespace fuseline::ui {

namespace {

constexpr double kRulerHeightPx = 22.0;
constexpr double kHeadHeightPx = 22.0;
constexpr double kTrackGapPx = 8.0;
constexpr double kBoxGapPx = 2.0;
constexpr double kPixelsPerTick = 110.0;
constexpr double kLeastLabelPx = 24.0;
constexpr double kZoomStep = 1.25;
constexpr double kPanShare = 0.15;
constexpr double kMarginShare = 0.08;
constexpr double kClickSlackPx = 4.0;
constexpr double kRoomBehind = 1.01;  // so that the last boxes do not touch the border

double rowHeight(TimelineLevel level) {
  switch (level) {
    case TimelineLevel::Pass: return 18.0;
    case TimelineLevel::Step: return 26.0;
    case TimelineLevel::Activity:
    case TimelineLevel::Launch: return 20.0;
  }
  return 0.0;
}

double heightOf(const TimelineTrack& track) {
  double height = kHeadHeightPx;
  for (const TimelineLevel level : track.rows) height += rowHeight(level);
  return height + kTrackGapPx;
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
  m_tracks = std::move(tracks);
  m_links = m_tracks.size() < 2 ? decltype(m_links)() : sameWork(m_tracks[0], m_tracks[1]);
  m_cursor.reset();
  if (totalNs != m_totalNs) {
    m_totalNs = totalNs;
    m_range.setTotal(totalNs * kRoomBehind);
    m_earlier.clear();
    m_stretch.reset();
  }
  QStringList summaries;
  for (const TimelineTrack& track : m_tracks) summaries.append(track.name + QStringLiteral(": ") + track.summary);
  setAccessibleDescription(summaries.join(QStringLiteral("; ")));
  setMinimumHeight(sizeHint().height());
  updateGeometry();
  update();
}

// ----------------------------------------------------------------------------------------------------------- geometry

QSize TimelineView::sizeHint() const {
  return {400, static_cast<int>(std::ceil(m_tracks.empty() ? 120.0 : trackTop(m_tracks.size())))};
}

double TimelineView::trackTop(std::size_t track) const {
  double top = kRulerHeightPx;
  for (std::size_t i = 0; i < track; ++i) top += heightOf(m_tracks[i]);
  return top;
}

double TimelineView::rowTop(std::size_t track, int row) const {
  double top = trackTop(track) + kHeadHeightPx;
  for (int i = 0; i < row; ++i) top += rowHeight(m_tracks[track].rows[static_cast<std::size_t>(i)]);
  return top;
}

QRectF TimelineView::cellArea(std::size_t track, const TimelineCell& cell) const {
  const int row = m_tracks[track].items[cell.first].row;
  const double height = rowHeight(m_tracks[track].rows[static_cast<std::size_t>(row)]);
  return {cell.left, rowTop(track, row) + kBoxGapPx / 2, cell.right - cell.left, height - kBoxGapPx};
}

std::vector<QRectF> TimelineView::areasOf(std::size_t track) const {
  std::vector<QRectF> areas(m_tracks[track].items.size());
  for (const TimelineCell& cell : cellsInView(m_tracks[track], m_range, width()))
    std::fill(areas.begin() + static_cast<std::ptrdiff_t>(cell.first),
              areas.begin() + static_cast<std::ptrdiff_t>(cell.last) + 1, cellArea(track, cell));
  return areas;
}

QRectF TimelineView::areaOf(std::size_t track, std::size_t item) const { return areasOf(track)[item]; }

// ------------------------------------------------------------------------------------------------------------- places

const TimelineItem* TimelineView::currentItem() const { return m_cursor ? &itemAt(*m_cursor) : nullptr; }

std::optional<std::pair<std::size_t, TimelineCell>> TimelineView::cellAt(QPointF position) const {
  constexpr double kReachPx = 1.0;  // a box of one pixel can be met
  for (std::size_t track = 0; track < m_tracks.size(); ++track)
    for (const TimelineCell& cell : cellsInView(m_tracks[track], m_range, width()))
      if (cellArea(track, cell).adjusted(-kReachPx, 0, kReachPx, 0).contains(position)) return std::pair(track, cell);
  return std::nullopt;
}

QString TimelineView::tipAt(QPointF position) const {
  const auto found = cellAt(position);
  if (!found) return {};
  const auto& [track, cell] = *found;
  if (!cell.isSeveral()) return m_tracks[track].items[cell.first].tip;
  const TimelineItem& first = m_tracks[track].items[cell.first];
  const TimelineItem& last = m_tracks[track].items[cell.last];
  return tr("<b>%1 too short to be told apart here</b><br>from %2 to %3; a double click shows them")
      .arg(cell.last - cell.first + 1)
      .arg(first.label.toHtmlEscaped(), last.label.toHtmlEscaped());
}

bool TimelineView::isSelected(const TimelineItem& item) const {
  return std::ranges::any_of(item.owners, [&](const QString& id) { return m_session.selection().contains(id); });
}

std::optional<TimelineView::Place> TimelineView::besideInRow(Place from, int by) const {
  const auto& items = m_tracks[from.track].items;
  const std::size_t next = from.item + static_cast<std::size_t>(by);  // wraps below 0, where there is no item
  if (next >= items.size() || items[next].row != items[from.item].row) return std::nullopt;
  return Place{from.track, next};
}

std::vector<std::pair<std::size_t, int>> TimelineView::allRows() const {
  std::vector<std::pair<std::size_t, int>> rows;
  for (std::size_t track = 0; track < m_tracks.size(); ++track)
    for (int row = 0; row < static_cast<int>(m_tracks[track].rows.size()); ++row) rows.emplace_back(track, row);
  return rows;
}

/// In the next row that has any, the box that is nearest in time.
std::optional<TimelineView::Place> TimelineView::inNextRow(Place from, int by) const {
  const auto rows = allRows();
  const double middleNs = (itemAt(from).startNs + itemAt(from).endNs) / 2;
  const auto here = std::ranges::find(rows, std::pair(from.track, itemAt(from).row));
  for (auto index = here - rows.begin() + by; index >= 0 && index < std::ssize(rows); index += by) {
    const auto [track, row] = rows[static_cast<std::size_t>(index)];
    std::optional<Place> nearest;
    double least = 0.0;
    for (std::size_t item = 0; item < m_tracks[track].items.size(); ++item) {
      const TimelineItem& candidate = m_tracks[track].items[item];
      if (candidate.row != row) continue;
      const double apart = std::max({candidate.startNs - middleNs, middleNs - candidate.endNs, 0.0});
      if (nearest && apart >= least) continue;
      nearest = Place{track, item};
      least = apart;
    }
    if (nearest) return nearest;
  }
  return std::nullopt;
}

/// Where a key leads; nullopt where it leads nowhere.
std::optional<TimelineView::Place> TimelineView::neighbour(int key) const {
  if (m_tracks.empty()) return std::nullopt;
  if (!m_cursor) {
    const auto& items = m_tracks.front().items;
    const auto step = std::ranges::find(items, TimelineLevel::Step, &TimelineItem::level);
    return step == items.end() ? std::nullopt : std::optional(Place{0, static_cast<std::size_t>(step - items.begin())});
  }
  switch (key) {
    case Qt::Key_Left:
    case Qt::Key_Comma: return besideInRow(*m_cursor, -1);
    case Qt::Key_Right:
    case Qt::Key_Period: return besideInRow(*m_cursor, 1);
    case Qt::Key_Up: return inNextRow(*m_cursor, -1);
    case Qt::Key_Down: return inNextRow(*m_cursor, 1);
    default: return std::nullopt;
  }
}

// ----------------------------------------------------------------------------------------------------------- commands

bool TimelineView::isOwnKey(int key) const {
  static constexpr int kKeys[] = {Qt::Key_Left,   Qt::Key_Right,    Qt::Key_Up,   Qt::Key_Down, Qt::Key_Comma,
                                  Qt::Key_Period, Qt::Key_W,        Qt::Key_S,    Qt::Key_A,    Qt::Key_D,
                                  Qt::Key_Plus,   Qt::Key_Minus,    Qt::Key_Home, Qt::Key_F,    Qt::Key_Return,
                                  Qt::Key_Enter,  Qt::Key_Backspace};
  return std::ranges::find(kKeys, key) != std::end(kKeys);
}

void TimelineView::select(Place place) {
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
  for (const TimelineTrack& track : m_tracks)
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

void TimelineView::keyPressEvent(QKeyEvent* event) {
  if (m_tracks.empty() || !isOwnKey(event->key())) return QWidget::keyPressEvent(event);
  if (handleView(event->key())) return;
  if (const auto next = neighbour(event->key())) select(*next);
}

bool TimelineView::event(QEvent* event) {
  if (const std::optional<Pinch> pinch = pinchIn(*event); pinch && !m_tracks.empty()) {
    m_range.zoom(pinch->factor, timeAt(pinch->position.x()));
    update();
    return true;
  }
  takeOwnKey(*event, Qt::ShiftModifier | Qt::KeypadModifier, [this](int key) { return isOwnKey(key); });
  return answerToolTip(*event, *this, [this](QPoint place) { return tipAt(place); }) || QWidget::event(event);
}

void TimelineView::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton || m_tracks.empty()) return QWidget::mousePressEvent(event);
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
    m_stretch = std::minmax(m_drag->fromNs, std::clamp(timeAt(x), 0.0, m_totalNs));
  else
    m_range.pan(m_drag->fromNs - timeAt(x));
  update();
}

void TimelineView::mouseReleaseEvent(QMouseEvent* event) {
  const std::optional<Drag> drag = std::exchange(m_drag, std::nullopt);
  if (!drag || drag->hasMoved) return;
  m_stretch.reset();
  if (const auto found = cellAt(event->position()))
    select({found->first, found->second.first});
  else
    m_session.select({});
  update();
}

void TimelineView::mouseDoubleClickEvent(QMouseEvent* event) {
  const auto found = cellAt(event->position());
  if (!found) return;
  const auto& items = m_tracks[found->first].items;
  jumpTo(items[found->second.first].startNs, items[found->second.last].endNs);
}

void TimelineView::wheelEvent(QWheelEvent* event) {
  if (m_tracks.empty()) return QWidget::wheelEvent(event);
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
  if (!m_stretch) return {};
  QStringList parts = {tr("Δ %1").arg(formatDurationNs(m_stretch->second - m_stretch->first))};
  for (const TimelineTrack& track : m_tracks) parts.append(spanSummary(track, m_stretch->first, m_stretch->second));
  return parts.join(QStringLiteral("  ·  "));
}

// ----------------------------------------------------------------------------------------------------------- painting

void TimelineView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), m_theme.colors().base);
  if (m_tracks.empty()) return;
  paintRuler(painter);
  for (std::size_t track = 0; track < m_tracks.size(); ++track) paintTrack(painter, track);
  painter.setRenderHint(QPainter::Antialiasing);
  paintLinks(painter);
  paintStretch(painter);
}

void TimelineView::paintRuler(QPainter& painter) const {
  painter.setFont(scaledFont(0.85));
  for (const double moment : m_range.ticks(static_cast<int>(width() / kPixelsPerTick))) {
    const double x = std::round(m_range.xAt(moment, width()));
    painter.setPen(m_theme.colors().grid);
    painter.drawLine(QPointF(x, kRulerHeightPx - 5), QPointF(x, height()));
    painter.setPen(m_theme.colors().dimText);
    painter.drawText(QRectF(x + 4, 0, kPixelsPerTick, kRulerHeightPx), Qt::AlignVCenter | Qt::AlignLeft,
                     moment == 0.0 ? QStringLiteral("0") : formatDurationNs(moment));
  }
}

void TimelineView::paintTrack(QPainter& painter, std::size_t track) const {
  const TimelineTrack& shown = m_tracks[track];
  const QRectF head(8, trackTop(track), width() - 16, kHeadHeightPx);
  painter.fillRect(head.adjusted(-8, 1, 8, -1), m_theme.colors().base);  // no line of the ruler crosses a text
  painter.setFont(scaledFont(0.95, QFont::DemiBold));
  painter.setPen(m_theme.colors().text);
  painter.drawText(head, Qt::AlignVCenter | Qt::AlignLeft, shown.name);
  const double nameWidth = QFontMetricsF(painter.font()).horizontalAdvance(shown.name);
  painter.setFont(scaledFont(0.85));
  painter.setPen(m_theme.colors().dimText);
  painter.drawText(head.adjusted(nameWidth + 12, 0, 0, 0), Qt::AlignVCenter | Qt::AlignLeft, shown.summary);
  for (const TimelineCell& cell : cellsInView(shown, m_range, width())) paintCell(painter, track, cell);
}

/// Passes in their own colour, launches without one, all else in that of its op.
QColor TimelineView::fillOf(const TimelineItem& item) const {
  const ThemeColors& colors = m_theme.colors();
  if (item.level == TimelineLevel::Pass)
    return mixed(item.isBackward ? colors.backward : colors.forward, colors.base, 0.28);
  if (item.level == TimelineLevel::Launch) return mixed(colors.dimText, colors.base, 0.3);
  return mixed(m_theme.categoryColor(item.category), colors.base, item.level == TimelineLevel::Step ? 0.55 : 0.35);
}

void TimelineView::paintCell(QPainter& painter, std::size_t track, const TimelineCell& cell) const {
  const TimelineItem& item = m_tracks[track].items[cell.first];
  const QRectF area = cellArea(track, cell);
  const QColor fill = fillOf(item);
  painter.fillRect(area, fill);
  if (cell.isSeveral()) painter.fillRect(area, QBrush(m_theme.colors().text, Qt::Dense6Pattern));
  const ThemeColors& colors = m_theme.colors();
  const bool isMarked = isSelected(item);
  if (area.width() >= 2.0 || isMarked) {
    const QColor fused = item.isBackward ? colors.backward : colors.forward;
    const QColor line = isMarked ? colors.accent : item.isFused ? fused : mixed(fill, colors.text, 0.75);
    painter.setPen(QPen(line, isMarked || item.isFused ? 2.0 : 1.0));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(area.adjusted(0.5, 0.5, -0.5, -0.5));
  }
  if (m_cursor && m_cursor->track == track && cell.first <= m_cursor->item && m_cursor->item <= cell.last &&
      hasFocus()) {
    painter.setPen(QPen(colors.text, 1.2, Qt::DotLine));
    painter.drawRect(area.adjusted(2.5, 2.5, -2.5, -2.5));
  }
  if (!cell.isSeveral()) paintLabel(painter, area, item, fill);
}

void TimelineView::paintLabel(QPainter& painter, const QRectF& area, const TimelineItem& item,
                              const QColor& ground) const {
  if (area.width() < kLeastLabelPx) return;
  const bool isStep = item.level == TimelineLevel::Step;
  painter.setFont(scaledFont(isStep ? 0.9 : 0.8, item.isFused ? QFont::DemiBold : QFont::Normal));
  painter.setPen(textOn(ground));
  const QRectF text = area.adjusted(5, 0, -4, 0);
  painter.drawText(text, Qt::AlignVCenter | Qt::AlignLeft,
                   QFontMetricsF(painter.font()).elidedText(item.label, Qt::ElideRight, text.width()));
}

/// From what the selected ops took in the unfused plan to what they take in the fused one.
void TimelineView::paintLinks(QPainter& painter) const {
  if (m_links.empty() || m_session.selection().isEmpty()) return;
  QColor band = m_theme.colors().accent;
  band.setAlpha(48);
  const std::vector<QRectF> uppers = areasOf(0);
  const std::vector<QRectF> lowers = areasOf(1);
  for (const auto& [upper, lower] : m_links) {
    if (!isSelected(m_tracks[0].items[upper]) && !isSelected(m_tracks[1].items[lower])) continue;
    const QRectF& from = uppers[upper];
    const QRectF& to = lowers[lower];
    if (from.isNull() || to.isNull()) continue;
    QPainterPath path(from.bottomLeft());
    path.lineTo(from.bottomRight());
    path.lineTo(to.topRight());
    path.lineTo(to.topLeft());
    path.closeSubpath();
    painter.fillPath(path, band);
  }
}

void TimelineView::paintStretch(QPainter& painter) const {
  if (!m_stretch) return;
  const double left = m_range.xAt(m_stretch->first, width());
  const double right = m_range.xAt(m_stretch->second, width());
  QColor fill = m_theme.colors().accent;
  fill.setAlpha(36);
  painter.fillRect(QRectF(left, kRulerHeightPx, right - left, height()), fill);
  painter.setPen(QPen(m_theme.colors().accent, 1));
  for (const double x : {left, right}) painter.drawLine(QPointF(x, 0), QPointF(x, height()));
  painter.setFont(scaledFont(0.9, QFont::DemiBold));
  const QString text = measuredText();
  const double textWidth = QFontMetricsF(painter.font()).horizontalAdvance(text) + 12;
  const QRectF ground(std::clamp((left + right - textWidth) / 2, 0.0, std::max(0.0, width() - textWidth)), 1, textWidth,
                      kRulerHeightPx - 2);
  painter.fillRect(ground, m_theme.colors().accent);
  painter.setPen(m_theme.colors().onAccent);
  painter.drawText(ground, Qt::AlignCenter, text);
}

// -------------------------------------------------------------------------------------------------------------- panel

namespace {

QString methodText(const RunRecord& record) {
  const std::string& timing = record.settings.timing;
  if (timing == "cupti") return TimelinePanel::tr("each kernel as CUPTI saw it");
  return timing == "events" ? TimelinePanel::tr("steps on the device's clock, each launched by itself")
                            : TimelinePanel::tr("steps on the host's clock, with a wait after each");
}

QString captionOf(const LastRun& run) {
  return TimelinePanel::tr("One round of each plan: the one with the median total") + QStringLiteral(" · ") +
         methodText(run.record).toHtmlEscaped();
}

}  // namespace

TimelinePanel::TimelinePanel(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_theme(theme),
      m_caption(new QLabel(this)),
      m_empty(new QLabel(this)),
      m_area(new QScrollArea(this)),
      m_view(new TimelineView(session, theme)) {
  m_caption->setContentsMargins(10, 6, 10, 6);
  m_caption->setTextFormat(Qt::RichText);
  m_caption->setWordWrap(true);
  m_caption->setToolTip(
      tr("Wheel or W and S zoom · drag or A and D pan · Home shows all, F what is selected\n"
         "Double click or Return zooms to a box, Backspace back · Shift and a drag measure"));
  m_empty->setAlignment(Qt::AlignCenter);
  m_empty->setWordWrap(true);
  m_area->setWidgetResizable(true);
  m_area->setFrameShape(QFrame::NoFrame);
  m_area->setFocusPolicy(Qt::NoFocus);
  m_area->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  m_area->setWidget(m_view);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(m_caption);
  layout->addWidget(m_area, 1);
  layout->addWidget(m_empty, 1);
  for (const auto signal : {&Session::runFinished, &Session::documentReplaced})
    connect(&session, signal, this, &TimelinePanel::refresh);
  connect(&session, &Session::analysisChanged, this, &TimelinePanel::refresh);
  for (const auto signal : {&Session::documentChanged, &Session::passChanged})
    connect(&session, signal, this, &TimelinePanel::refreshCaption);
  connect(&theme, &Theme::changed, this, &TimelinePanel::refreshCaption);
  refresh();
}

QString TimelinePanel::emptyText() const {
  const auto& run = m_session.lastRun();
  if (!run) return tr("Nothing measured yet. Press Run (Ctrl+Enter) to see when each step runs.");
  const std::string reason = whyNoTimeline(run->record);
  if (reason.empty()) return {};
  return tr("This run has no timeline: %1. Press Run (Ctrl+Enter) to see when each step runs.").arg(toQt(reason));
}

/// Ops of the pipeline as it is now are those of the run only while nothing has changed.
void TimelinePanel::refresh() {
  const auto& run = m_session.lastRun();
  const Analysis& analysis = *m_session.analysis();
  const Graph* graph = run && !run->isStale && analysis.isRunnable() ? &analysis.graph() : nullptr;
  m_view->setTracks(run ? timelineTracks(run->record, graph) : std::vector<TimelineTrack>());
  const QString nothing = emptyText();
  m_empty->setText(nothing);
  m_empty->setVisible(!nothing.isEmpty());
  m_area->setVisible(nothing.isEmpty());
  m_caption->setVisible(nothing.isEmpty());
  refreshCaption();
}

void TimelinePanel::refreshCaption() {
  const auto& run = m_session.lastRun();
  if (!run) return;
  QString text = captionOf(*run);
  if (const QString stale = staleText(*run); !stale.isEmpty())
    text += QStringLiteral(" · <b style='color:%1'>%2</b>").arg(m_theme.colors().warning.name(), stale);
  m_caption->setText(text);
}

}  // namespace fuseline::ui
