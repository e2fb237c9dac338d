// The chart of the memory dock.
// SPDX-License-Identifier: Apache-2.0
#include "ui/memory/memory_chart.h"

#include "core/support/text.h"
#include "ui/theme/format.h"
#include "ui/timings/pass_look.h"
#include "ui/widgets/axis_range.h"
#include "ui/widgets/plot_painting.h"
#include "ui/widgets/view_events.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>

#include <algorithm>
#include <cmath>

namespace fuseline::ui {

namespace {

constexpr double kAxisGapPx = 5.0;
constexpr double kHeadroom = 1.08;     // above the highest line
constexpr double kLeastNamePx = 46.0;  // of a column that has its name beneath
constexpr double kSwatchPx = 12.0;

}  // namespace

MemoryChart::MemoryChart(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent), m_session(session), m_theme(theme) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Memory in use by step"));
  connect(&session.selection(), &Selection::changed, this, &MemoryChart::followSelection);
  connect(&theme, &Theme::changed, this, qOverload<>(&QWidget::update));
}

void MemoryChart::setPlot(MemoryPlot plot) {
  m_plot = std::move(plot);
  m_used.clear();
  for (const MemoryColumn& column : m_plot.columns)
    for (std::size_t i = 0; i < column.bytes.size(); ++i)
      if (column.bytes[i] > 0) m_used.insert(static_cast<MemoryPurpose>(i));
  m_cursor.reset();
  rescale();
  followSelection();
}

void MemoryChart::setOnlyChanging(bool isOnly) {
  m_isOnlyChanging = isOnly;
  rescale();
  update();
}

/// Levels of whole plans have no place among what changes.
void MemoryChart::rescale() {
  std::int64_t highest = m_isOnlyChanging ? 1 : std::max<std::int64_t>(m_plot.allocatedBytes, 1);
  for (const MemoryColumn& column : m_plot.columns) highest = std::max(highest, bytesOf(column));
  m_highestBytes = kHeadroom * static_cast<double>(highest);
}

// ----------------------------------------------------------------------------------------------------------- geometry

QSize MemoryChart::minimumSizeHint() const { return {260, 140}; }

/// From the bottom upwards.
const std::vector<MemoryPurpose>& MemoryChart::shown() const {
  static const std::vector<MemoryPurpose> changing = {MemoryPurpose::Kept, MemoryPurpose::Passing};
  static const std::vector<MemoryPurpose> all = {MemoryPurpose::Parameters,     MemoryPurpose::ParameterGradients,
                                                 MemoryPurpose::OptimizerState, MemoryPurpose::InputsAndOutputs,
                                                 MemoryPurpose::Kept,           MemoryPurpose::Passing};
  return m_isOnlyChanging ? changing : all;
}

std::int64_t MemoryChart::bytesOf(const MemoryColumn& column) const {
  std::int64_t bytes = 0;
  for (const MemoryPurpose purpose : shown()) bytes += column.of(purpose);
  return bytes;
}

/// Numbers beside the axis are whole multiples of KiB, MiB or GiB.
double MemoryChart::unitBytes() const {
  double unit = 1.0;
  while (m_highestBytes / unit > 2048.0) unit *= 1024.0;
  return unit;
}

/// Purposes that a step has memory for, as many in a line as there is room for.
std::vector<MemoryChart::LegendEntry> MemoryChart::legend() const {
  std::vector<LegendEntry> entries;
  QPointF place(kAxisGapPx, kAxisGapPx);
  for (const MemoryPurpose purpose : shown()) {
    if (!m_used.contains(purpose)) continue;
    const QString text = toQt(purposeName(purpose));
    const double wide = kSwatchPx + plotTextWidth(text) + 4 * kAxisGapPx;
    if (place.x() > kAxisGapPx && place.x() + wide > width()) place = QPointF(kAxisGapPx, place.y() + plotTextHeight());
    entries.push_back({purpose, text, place});
    place.rx() += wide;
  }
  return entries;
}

/// Beneath the legend and a line of names.
QRectF MemoryChart::plotArea() const {
  const double line = plotTextHeight();
  const std::vector<LegendEntry> entries = legend();
  const double legendBottom = (entries.empty() ? kAxisGapPx : entries.back().place.y()) + line;
  return QRectF(rect()).adjusted(plotTextWidth(QStringLiteral("0000 MiB")) + 2 * kAxisGapPx,
                                 legendBottom + line + kAxisGapPx, -2 * kAxisGapPx, -(line + 2 * kAxisGapPx));
}

double MemoryChart::columnWidth() const {
  return plotArea().width() / std::max(1.0, static_cast<double>(m_plot.columns.size()));
}

double MemoryChart::yOf(double bytes) const {
  const QRectF area = plotArea();
  return area.bottom() - area.height() * bytes / m_highestBytes;
}

QRectF MemoryChart::areaOf(std::size_t column) const {
  const double left = plotArea().left() + static_cast<double>(column) * columnWidth();
  const double top = yOf(static_cast<double>(bytesOf(m_plot.columns[column])));
  return {left, top, columnWidth(), plotArea().bottom() - top};
}

// ------------------------------------------------------------------------------------------------------------- places

/// The whole height above a step belongs to it.
std::optional<std::size_t> MemoryChart::columnAt(QPointF position) const {
  const QRectF area = plotArea();
  if (m_plot.columns.empty() || position.x() < area.left() || position.x() >= area.right()) return std::nullopt;
  const auto column = static_cast<std::size_t>((position.x() - area.left()) / columnWidth());
  return std::min(column, m_plot.columns.size() - 1);
}

QString MemoryChart::tipAt(QPointF position) const {
  const auto column = columnAt(position);
  return column ? tipOf(m_plot.columns[*column]) : QString();
}

bool MemoryChart::isSelected(const MemoryColumn& column) const {
  return std::ranges::any_of(column.owners,
                             [&](const QString& id) { return m_session.selection().ids().contains(id); });
}

bool MemoryChart::isOwnKey(int key) {
  static constexpr int kKeys[] = {Qt::Key_Left, Qt::Key_Right, Qt::Key_Home, Qt::Key_End};
  return std::ranges::find(kKeys, key) != std::end(kKeys);
}

std::optional<std::size_t> MemoryChart::neighbour(int key) const {
  if (m_plot.columns.empty()) return std::nullopt;
  const std::size_t last = m_plot.columns.size() - 1;
  if (key == Qt::Key_End) return last;
  if (!m_cursor || key == Qt::Key_Home) return 0;
  return key == Qt::Key_Left ? (*m_cursor > 0 ? *m_cursor - 1 : 0) : std::min(*m_cursor + 1, last);
}

void MemoryChart::select(std::size_t column) {
  m_cursor = column;
  const QStringList& owners = m_plot.columns[column].owners;
  m_session.selection().select(QSet<QString>(owners.begin(), owners.end()));
  describe();
  update();
}

/// Keys go on from what was selected elsewhere.
void MemoryChart::followSelection() {
  if (!m_cursor || !isSelected(*currentColumn())) {
    const auto selected = std::ranges::find_if(m_plot.columns, [&](const auto& column) { return isSelected(column); });
    m_cursor.reset();
    if (selected != m_plot.columns.end()) m_cursor = static_cast<std::size_t>(selected - m_plot.columns.begin());
  }
  describe();
  update();
}

/// The column that the keys stand on, else the highest one.
void MemoryChart::describe() {
  if (const MemoryColumn* column = currentColumn()) return setAccessibleDescription(wordsOf(*column));
  if (m_plot.columns.empty()) return setAccessibleDescription({});
  setAccessibleDescription(
      tr("%1; peak at %2")
          .arg(counted(std::ssize(m_plot.columns), tr("step"), tr("steps")), wordsOf(m_plot.columns[m_plot.peak])));
}

void MemoryChart::keyPressEvent(QKeyEvent* event) {
  if (!isOwnKey(event->key())) return QWidget::keyPressEvent(event);
  const auto next = neighbour(event->key());
  if (!next) return;
  select(*next);
  QToolTip::showText(mapToGlobal(areaOf(*next).topRight().toPoint()), tipOf(*currentColumn()), this);
}

bool MemoryChart::event(QEvent* event) {
  takeOwnKey(*event, Qt::KeypadModifier, isOwnKey);
  return answerToolTip(*event, *this, [this](QPoint place) { return tipAt(place); }) || QWidget::event(event);
}

void MemoryChart::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return QWidget::mousePressEvent(event);
  if (const auto column = columnAt(event->position()))
    select(*column);
  else
    m_session.selection().select({});
}

// ----------------------------------------------------------------------------------------------------------- painting

/// Told apart by their patterns, too.
QBrush MemoryChart::brushOf(MemoryPurpose purpose) const {
  const ThemeColors& colors = m_theme.colors();
  switch (purpose) {
    case MemoryPurpose::Parameters: return faded(colors.gemm, 0.75);
    case MemoryPurpose::ParameterGradients: return {colors.gemm, Qt::BDiagPattern};
    case MemoryPurpose::OptimizerState: return {colors.gemm, Qt::CrossPattern};
    case MemoryPurpose::InputsAndOutputs: return faded(colors.neutral, 0.75);
    case MemoryPurpose::Kept: return faded(colors.activation, 0.8);
    case MemoryPurpose::Passing: return {colors.backward, Qt::Dense4Pattern};
  }
  return {};
}

void MemoryChart::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), m_theme.colors().base);
  if (m_plot.columns.empty()) return;
  painter.setFont(plotFont());
  paintAxes(painter);
  paintColumns(painter);
  paintPassBorders(painter);
  paintMarks(painter);
  paintNames(painter);
  if (!m_isOnlyChanging) paintAllocated(painter);
  paintLegend(painter);
}

void MemoryChart::paintAxes(QPainter& painter) const {
  const QRectF area = plotArea();
  const double line = plotTextHeight();
  const double unit = unitBytes();
  const LinearRange range{.low = 0.0, .high = m_highestBytes / unit};
  for (const double value : range.ticks(std::max(2, static_cast<int>(area.height() / (1.8 * line))))) {
    const double y = std::round(yOf(value * unit)) + 0.5;
    painter.setPen(m_theme.colors().grid);
    painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    painter.setPen(m_theme.colors().dimText);
    painter.drawText(QRectF(0, y - line / 2, area.left() - kAxisGapPx, line), Qt::AlignRight | Qt::AlignVCenter,
                     bytesText(static_cast<std::int64_t>(value * unit)));
  }
  painter.setPen(m_theme.colors().border);
  painter.drawLine(area.topLeft(), area.bottomLeft());
  painter.drawLine(area.bottomLeft(), area.bottomRight());
}

/// Where there are more steps than pixels, each pixel shows the highest of its steps.
void MemoryChart::paintColumns(QPainter& painter) const {
  const double width = columnWidth();
  const double gap = width > 8.0 ? 1.0 : 0.0;
  const auto perPixel = static_cast<std::size_t>(std::max(1.0, std::floor(1.0 / width)));
  for (std::size_t first = 0; first < m_plot.columns.size(); first += perPixel) {
    const std::size_t last = std::min(first + perPixel, m_plot.columns.size());
    const auto from = m_plot.columns.begin() + static_cast<std::ptrdiff_t>(first);
    const auto highest =
        std::max_element(from, m_plot.columns.begin() + static_cast<std::ptrdiff_t>(last),
                         [this](const MemoryColumn& a, const MemoryColumn& b) { return bytesOf(a) < bytesOf(b); });
    const double left = areaOf(first).left();
    const double right = last < m_plot.columns.size() ? areaOf(last).left() : plotArea().right();
    paintColumn(painter, *highest, QRectF(left, 0, std::max(1.0, right - left - gap), 0));
  }
}

/// place: from left to right.
void MemoryChart::paintColumn(QPainter& painter, const MemoryColumn& column, const QRectF& place) const {
  double below = 0.0;
  for (const MemoryPurpose purpose : shown()) {
    const double above = below + static_cast<double>(column.of(purpose));
    const QRectF part(QPointF(place.left(), yOf(above)), QPointF(place.right(), yOf(below)));
    below = above;
    painter.fillRect(part, brushOf(purpose));
  }
}

/// Where the pass begins, if another one ends there.
std::optional<double> MemoryChart::paintBorder(QPainter& painter, Phase phase) const {
  const auto first = std::ranges::find(m_plot.columns, phase, &MemoryColumn::phase);
  if (first == m_plot.columns.end() || first == m_plot.columns.begin()) return std::nullopt;
  const QRectF area = plotArea();
  const double x = std::round(areaOf(static_cast<std::size_t>(first - m_plot.columns.begin())).left()) - 0.5;
  painter.setPen(QPen(m_theme.colors().text, 1.0, Qt::DashLine));
  painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
  return x;
}

/// The optimizer has few steps, and is named where backward leaves room at the end.
void MemoryChart::paintPassBorders(QPainter& painter) const {
  const std::optional<double> backward = paintBorder(painter, Phase::Backward);
  const std::optional<double> optimizer = paintBorder(painter, Phase::Optimizer);
  const QRectF area = plotArea();
  const QRectF names(area.left(), area.top() - plotTextHeight(), area.width(), plotTextHeight());
  const auto paintName = [&](double left, double right, Qt::Alignment side, Phase phase) {
    painter.setPen(passColor(m_theme.colors(), phase));
    painter.drawText(QRectF(QPointF(left, names.top()), QPointF(right, names.bottom())), side, toQt(phaseName(phase)));
  };
  double backwardEnd = area.left();
  if (backward) {
    paintName(area.left(), *backward - kAxisGapPx, Qt::AlignRight, Phase::Forward);
    paintName(*backward + kAxisGapPx, area.right(), Qt::AlignLeft, Phase::Backward);
    backwardEnd = *backward + kAxisGapPx + plotTextWidth(toQt(phaseName(Phase::Backward)));
  }
  if (optimizer && backwardEnd + kAxisGapPx + plotTextWidth(toQt(phaseName(Phase::Optimizer))) < area.right())
    paintName(area.left(), area.right(), Qt::AlignRight, Phase::Optimizer);
}

/// The columns of the selected ops, and the one that the keys stand on.
void MemoryChart::paintMarks(QPainter& painter) const {
  const QRectF area = plotArea();
  painter.setBrush(Qt::NoBrush);
  for (std::size_t i = 0; i < m_plot.columns.size(); ++i) {
    if (!isSelected(m_plot.columns[i])) continue;
    const bool isCurrent = m_cursor == i && hasFocus();
    painter.setPen(QPen(m_theme.colors().accent, isCurrent ? 3.0 : 1.5));
    painter.drawRect(areaOf(i).adjusted(0.5, 0.5, -1.5, -0.5).intersected(area));
  }
}

void MemoryChart::paintNames(QPainter& painter) const {
  const double width = columnWidth();
  if (width < kLeastNamePx) return;
  const QFontMetricsF metrics(plotFont());
  painter.setPen(m_theme.colors().dimText);
  for (std::size_t i = 0; i < m_plot.columns.size(); ++i) {
    const QRectF place(areaOf(i).left(), plotArea().bottom() + kAxisGapPx, width, plotTextHeight());
    painter.drawText(place, Qt::AlignCenter,
                     metrics.elidedText(m_plot.columns[i].label, Qt::ElideRight, width - kAxisGapPx));
  }
}

void MemoryChart::paintAllocated(QPainter& painter) const {
  const QRectF area = plotArea();
  const double y = std::round(yOf(static_cast<double>(m_plot.allocatedBytes))) + 0.5;
  painter.setPen(QPen(m_theme.colors().text, 1.2));
  painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
  painter.drawText(QRectF(area.left(), y - plotTextHeight(), area.width(), plotTextHeight()), Qt::AlignRight,
                   tr("allocated %1").arg(bytesText(m_plot.allocatedBytes)));
}

void MemoryChart::paintLegend(QPainter& painter) const {
  for (const LegendEntry& entry : legend()) {
    const QRectF swatch(entry.place + QPointF(0, (plotTextHeight() - kSwatchPx) / 2), QSizeF(kSwatchPx, kSwatchPx));
    painter.fillRect(swatch, brushOf(entry.purpose));
    painter.setPen(m_theme.colors().border);
    painter.drawRect(swatch);
    painter.setPen(m_theme.colors().text);
    const QSizeF size(plotTextWidth(entry.text) + 2, plotTextHeight());
    painter.drawText(QRectF(QPointF(swatch.right() + kAxisGapPx, entry.place.y()), size),
                     Qt::AlignLeft | Qt::AlignVCenter, entry.text);
  }
}

}  // namespace fuseline::ui
