// The boxes of the panel Flame graph.
// SPDX-License-Identifier: Apache-2.0
#include "ui/flame/flame_view.h"

#include "ui/theme/format.h"
#include "ui/theme/svg_picture.h"
#include "ui/timings/pass_look.h"
#include "ui/widgets/plot_painting.h"
#include "ui/widgets/view_events.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QToolTip>

#include <algorithm>
#include <cmath>

namespace fuseline::ui {

namespace {

constexpr double kRoomPx = 8.0;  // above and beneath a name, together
constexpr double kGapPx = 1.0;
constexpr double kLeastWidthPx = 1.0;
constexpr double kLeastFlameLabelPx = 24.0;
constexpr double kFaded = 0.25;
constexpr double kNameSize = 0.9;

/// Names that lead to a box, for finding it again.
QStringList namesTo(const std::vector<FlameBox>& boxes, std::size_t box) {
  QStringList names;
  for (; box != 0; box = boxes[box].parent) names.prepend(boxes[box].name);
  return names;
}

}  // namespace

FlameView::FlameView(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent), m_session(session), m_theme(theme) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Flame graph"));
  connect(&session.selection(), &Selection::changed, this, &FlameView::followSelection);
  connect(&theme, &Theme::changed, this, qOverload<>(&QWidget::update));
}

void FlameView::setBoxes(std::vector<FlameBox> boxes) {
  m_rowPx = QFontMetricsF(scaledFont(kNameSize)).height() + kRoomPx;
  const QStringList zoomed = m_boxes.empty() ? QStringList() : namesTo(m_boxes, m_zoomed);
  m_boxes = std::move(boxes);
  m_cursor.reset();
  findMatches();
  goBackTo(zoomed);
  setMinimumHeight(sizeHint().height());
  updateGeometry();
  describe();
  update();
  Q_EMIT zoomChanged();
}

void FlameView::goBackTo(const QStringList& names) {
  m_zoomed = 0;
  if (names.isEmpty()) return;
  for (std::size_t i = 1; i < m_boxes.size() && m_zoomed == 0; ++i)
    if (m_boxes[i].row == names.size() && namesTo(m_boxes, i) == names) m_zoomed = i;
}

void FlameView::setSearch(const QRegularExpression& expression) {
  m_search = expression;
  findMatches();
  update();
}

void FlameView::findMatches() {
  m_isMatch = matchingBoxes(m_boxes, m_search);
  m_numMatches = static_cast<int>(std::ranges::count(m_isMatch, true));
}

double FlameView::matchedShare() const {
  return m_boxes.empty() ? 0.0 : matchedNs(m_boxes, m_isMatch) / m_boxes.front().lengthNs();
}

void FlameView::selectNextMatch() {
  for (std::size_t step = 1; step <= m_boxes.size(); ++step) {
    const std::size_t box = (m_cursor.value_or(0) + step) % m_boxes.size();
    if (m_isMatch[box]) return select(box);
  }
}

void FlameView::zoomTo(std::size_t box) {
  m_zoomed = box;
  describe();
  update();
  Q_EMIT zoomChanged();
}

// ----------------------------------------------------------------------------------------------------------- geometry

int FlameView::numRows() const {
  int last = 0;
  for (const FlameBox& box : m_boxes) last = std::max(last, box.row);
  return last + 1;
}

QSize FlameView::sizeHint() const { return {400, static_cast<int>(std::ceil(numRows() * m_rowPx)) + 4}; }

/// Those that the zoomed one is in fill their rows.
bool FlameView::isAboveZoomed(std::size_t box) const {
  for (std::size_t inner = m_zoomed; inner != 0; inner = m_boxes[inner].parent)
    if (m_boxes[inner].parent == box) return true;
  return false;
}

QRectF FlameView::areaOf(std::size_t index) const {
  const FlameBox& box = m_boxes[index];
  const double top = box.row * m_rowPx + kGapPx;
  const double height = m_rowPx - kGapPx;
  if (index == m_zoomed || isAboveZoomed(index)) return {0.0, top, static_cast<double>(width()), height};
  const FlameBox& zoomed = m_boxes[m_zoomed];
  const bool isInside = box.row > zoomed.row && box.startNs >= zoomed.startNs && box.endNs <= zoomed.endNs;
  if (!isInside) return {};
  const double pxPerNs = width() / zoomed.lengthNs();
  const double left = (box.startNs - zoomed.startNs) * pxPerNs;
  return {left, top, std::max(box.lengthNs() * pxPerNs, kLeastWidthPx), height};
}

std::optional<std::size_t> FlameView::boxAt(QPointF position) const {
  for (std::size_t i = 0; i < m_boxes.size(); ++i)
    if (areaOf(i).contains(position)) return i;
  return std::nullopt;
}

QString FlameView::tipAt(QPointF position) const {
  const auto box = boxAt(position);
  return box ? m_boxes[*box].tip : QString();
}

bool FlameView::isSelected(const FlameBox& box) const {
  return std::ranges::any_of(box.owners, [&](const QString& id) { return m_session.selection().ids().contains(id); });
}

/// Zooms out to a selection made elsewhere.
void FlameView::followSelection() {
  bool isAnySelected = false;
  for (std::size_t i = 0; i < m_boxes.size(); ++i) {
    if (!isSelected(m_boxes[i])) continue;
    isAnySelected = true;
    if (!areaOf(i).isNull()) return update();
  }
  isAnySelected ? zoomTo(0) : update();
}

// ----------------------------------------------------------------------------------------------------------- commands

std::optional<std::size_t> FlameView::besideInRow(std::size_t from, int by) const {
  for (std::size_t i = from + static_cast<std::size_t>(by); i < m_boxes.size(); i += static_cast<std::size_t>(by))
    if (m_boxes[i].row == m_boxes[from].row && !areaOf(i).isNull()) return i;
  return std::nullopt;
}

std::optional<std::size_t> FlameView::widestBeneath(std::size_t box) const {
  std::optional<std::size_t> widest;
  for (std::size_t i = box + 1; i < m_boxes.size(); ++i) {
    if (m_boxes[i].parent != box) continue;
    if (!widest || m_boxes[i].lengthNs() > m_boxes[*widest].lengthNs()) widest = i;
  }
  return widest;
}

/// Where an arrow key leads; nothing where it leads nowhere.
std::optional<std::size_t> FlameView::neighbour(int key) const {
  if (!m_cursor) return m_zoomed;
  switch (key) {
    case Qt::Key_Left: return besideInRow(*m_cursor, -1);
    case Qt::Key_Right: return besideInRow(*m_cursor, 1);
    case Qt::Key_Up: return *m_cursor == 0 ? std::nullopt : std::optional(m_boxes[*m_cursor].parent);
    case Qt::Key_Down: return widestBeneath(*m_cursor);
    default: return std::nullopt;
  }
}

/// Zoomed out, Escape and Home are the window's.
bool FlameView::isOwnKey(int key) const {
  static constexpr int kKeys[] = {Qt::Key_Left,   Qt::Key_Right, Qt::Key_Up,       Qt::Key_Down,
                                  Qt::Key_Return, Qt::Key_Enter, Qt::Key_Backspace};
  const bool zoomsOut = key == Qt::Key_Escape || key == Qt::Key_Home;
  return std::ranges::find(kKeys, key) != std::end(kKeys) || (zoomsOut && m_zoomed != 0);
}

bool FlameView::handleZoom(int key) {
  switch (key) {
    case Qt::Key_Return:
    case Qt::Key_Enter: zoomTo(m_cursor.value_or(0)); return true;
    case Qt::Key_Backspace: zoomTo(m_boxes[m_zoomed].parent); return true;
    case Qt::Key_Home:
    case Qt::Key_Escape: zoomTo(0); return true;
    default: return false;
  }
}

void FlameView::select(std::size_t box) {
  m_cursor = box;
  if (areaOf(box).isNull()) zoomTo(0);
  const QStringList& owners = m_boxes[box].owners;
  m_session.selection().select(QSet<QString>(owners.begin(), owners.end()));
  describe();
  update();
}

/// The box that the keys stand on, else the one that it is zoomed to.
void FlameView::describe() {
  setAccessibleDescription(m_boxes.empty() ? QString() : m_boxes[m_cursor.value_or(m_zoomed)].words);
}

void FlameView::keyPressEvent(QKeyEvent* event) {
  if (m_boxes.empty() || !isOwnKey(event->key())) return QWidget::keyPressEvent(event);
  if (handleZoom(event->key())) return;
  const auto next = neighbour(event->key());
  if (!next) return;
  select(*next);
  QToolTip::showText(mapToGlobal(areaOf(*next).bottomLeft().toPoint()), m_boxes[*next].tip, this);
}

bool FlameView::event(QEvent* event) {
  takeOwnKey(*event, Qt::KeypadModifier, [this](int key) { return isOwnKey(key); });
  return answerToolTip(*event, *this, [this](QPoint place) { return tipAt(place); }) || QWidget::event(event);
}

void FlameView::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return QWidget::mousePressEvent(event);
  if (const auto box = boxAt(event->position())) return select(*box);
  m_session.selection().select({});
}

void FlameView::mouseDoubleClickEvent(QMouseEvent* event) {
  if (const auto box = boxAt(event->position())) zoomTo(*box);
}

// ----------------------------------------------------------------------------------------------------------- painting

QByteArray FlameView::toSvg(const QString& title) const {
  Theme paper;
  paper.usePaperColors(false);
  const QSize size(width(), sizeHint().height());
  return svgPicture(size, title, tr("Flame graph of a pipeline's time, drawn by Fuseline"), [&](QPaintDevice& device) {
    QPainter painter(&device);
    painter.fillRect(QRect(QPoint(), size), paper.colors().canvas);
    paintBoxes(painter, paper);
  });
}

void FlameView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), m_theme.colors().base);
  paintBoxes(painter, m_theme);
}

/// Boxes too narrow to show their parts are drawn without them.
void FlameView::paintBoxes(QPainter& painter, const Theme& theme) const {
  std::vector<bool> isHidden(m_boxes.size(), false);
  for (std::size_t i = 0; i < m_boxes.size(); ++i) {
    const QRectF area = areaOf(i);
    const std::size_t parent = m_boxes[i].parent;
    isHidden[i] = area.isNull() || (i > 0 && isHidden[parent] && !isAboveZoomed(i) && i != m_zoomed);
    if (isHidden[i]) continue;
    paintBox(painter, theme, i, area);
    isHidden[i] = area.width() <= kLeastWidthPx;
  }
}

/// Plans and passes in their own colors, groups without one, all else in that of its op.
QColor FlameView::fillOf(const FlameBox& box, const Theme& theme) const {
  const ThemeColors& colors = theme.colors();
  switch (box.level) {
    case TimeLevel::Plan: return mixed(colors.dimText, colors.base, 0.25);
    case TimeLevel::Pass: return mixed(passColor(colors, box.phase), colors.base, 0.28);
    case TimeLevel::Group: return mixed(colors.neutral, colors.base, 0.22);
    case TimeLevel::Step: return mixed(theme.categoryColor(box.category), colors.base, 0.55);
    case TimeLevel::Part: return mixed(colors.dimText, colors.base, 0.12);
    case TimeLevel::Activity: return mixed(theme.categoryColor(box.category), colors.base, 0.35);
  }
  return colors.base;
}

void FlameView::paintBox(QPainter& painter, const Theme& theme, std::size_t index, const QRectF& area) const {
  const FlameBox& box = m_boxes[index];
  const ThemeColors& colors = theme.colors();
  const bool isFaded = m_numMatches > 0 && !m_isMatch[index];
  const QColor fill = isFaded ? mixed(fillOf(box, theme), colors.base, kFaded) : fillOf(box, theme);
  painter.fillRect(area, fill);
  if (box.isEstimate) painter.fillRect(area, QBrush(mixed(colors.dimText, fill, 0.35), Qt::BDiagPattern));
  const bool isMarked = isSelected(box);
  if (area.width() >= 3.0) {
    const QColor fused = passColor(colors, box.phase);
    const QColor border = isMarked ? colors.accent : box.isFused ? fused : mixed(fill, colors.text, 0.75);
    painter.setPen(QPen(border, isMarked || box.isFused ? 2.0 : 1.0, box.isEstimate ? Qt::DashLine : Qt::SolidLine));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(area.adjusted(0.5, 0.5, -0.5, -0.5));
  }
  if (m_cursor == index && hasFocus()) {
    painter.setPen(QPen(colors.text, 1.2, Qt::DotLine));
    painter.drawRect(area.adjusted(2.5, 2.5, -2.5, -2.5));
  }
  paintLabel(painter, box, area, fill);
}

void FlameView::paintLabel(QPainter& painter, const FlameBox& box, const QRectF& area, const QColor& ground) const {
  if (area.width() < kLeastFlameLabelPx) return;
  painter.setFont(scaledFont(kNameSize, box.isFused ? QFont::DemiBold : QFont::Normal));
  painter.setPen(textOn(ground));
  const QRectF place = area.adjusted(5, 0, -4, 0);
  const QFontMetricsF metrics(painter.font());
  const QString time = (box.isEstimate ? QStringLiteral("≈ ") : QString()) + formatDurationNs(box.lengthNs());
  const QString both = box.label + QStringLiteral("  ") + time;
  const bool hasRoom = metrics.horizontalAdvance(both) <= place.width();
  painter.drawText(place, Qt::AlignVCenter | Qt::AlignLeft,
                   hasRoom ? both : metrics.elidedText(box.label, Qt::ElideRight, place.width()));
}

}  // namespace fuseline::ui
