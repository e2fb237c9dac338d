// The chart of the sweep dock.
// SPDX-License-Identifier: Apache-2.0
#include "ui/sweep/sweep_chart.h"

#include "ui/theme/format.h"
#include "ui/widgets/plot_painting.h"
#include "ui/widgets/view_events.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QLineF>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>

#include <algorithm>
#include <array>
#include <cmath>

namespace fuseline::ui {

namespace {

constexpr double kRadiusPx = 4.0;
constexpr double kSweepReachPx = 9.0;  // around a dot, for the pointer
constexpr double kSweepGapPx = 5.0;
constexpr double kCapPx = 3.5;  // half the width of a whisker's end
constexpr double kLegendLinePx = 22.0;

/// Width of a legend entry: its line, its text, and the gap after it.
double entryWidth(const QString& text) { return kLegendLinePx + kSweepGapPx + plotTextWidth(text) + 3 * kSweepGapPx; }

bool hasUnclearDot(const SweepPlot& plot) {
  const auto isUnclear = [](const SweepSeries& series) {
    return !std::ranges::all_of(series.dots, &SweepDot::isClear);
  };
  return std::ranges::any_of(plot.series, isUnclear);
}

}  // namespace

SweepChart::SweepChart(const Theme& theme, QWidget* parent) : QWidget(parent), m_theme(theme) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Chart of the sweep"));
  connect(&theme, &Theme::changed, this, qOverload<>(&QWidget::update));
}

void SweepChart::setPlot(SweepPlot plot) {
  const std::optional<std::size_t> row = m_cursor ? std::optional(currentDot()->row) : std::nullopt;
  m_plot = std::move(plot);
  m_cursor.reset();
  if (row) setCurrentRow(*row);
  describe();
  update();
}

// ----------------------------------------------------------------------------------------------------------- geometry

QSize SweepChart::minimumSizeHint() const { return {220, 140}; }

/// Nothing where there is one line, and no more to say.
std::vector<SweepChart::LegendEntry> SweepChart::legend() const {
  std::vector<LegendEntry> entries;
  for (const SweepSeries& series : m_plot.series) {
    const bool isNew =
        std::ranges::none_of(entries, [&](const LegendEntry& entry) { return entry.look == series.look; });
    if (isNew && !series.recipe.isEmpty()) entries.push_back({.text = series.recipe, .look = series.look});
  }
  if (m_plot.quantity == SweepQuantity::Time) {
    entries.push_back({.text = tr("unfused"), .isDashed = true});
    entries.push_back({.text = tr("fused")});
  } else if (hasUnclearDot(m_plot)) {
    entries.push_back({.text = tr("hollow: not significant"), .isHollow = true});
  }
  placeInLines(entries);
  return entries;
}

/// As many in a line as there is room for.
void SweepChart::placeInLines(std::vector<LegendEntry>& entries) const {
  QPointF place(kSweepGapPx, kSweepGapPx);
  for (LegendEntry& entry : entries) {
    const bool isFirst = place.x() == kSweepGapPx;
    if (!isFirst && place.x() + entryWidth(entry.text) > width() - kSweepGapPx)
      place = QPointF(kSweepGapPx, place.y() + plotTextHeight());
    entry.place = place;
    place.rx() += entryWidth(entry.text);
  }
}

double SweepChart::legendHeight() const {
  const std::vector<LegendEntry> entries = legend();
  return entries.empty() ? 0.0 : entries.back().place.y() - kSweepGapPx + plotTextHeight();
}

QRectF SweepChart::plotArea() const {
  const double line = plotTextHeight();
  double numbers = 0.0;
  for (const double value : m_plot.y.ticks(8)) numbers = std::max(numbers, plotTextWidth(valueText(value)));
  return QRectF(rect()).adjusted(numbers + 2 * kSweepGapPx, line + legendHeight() + 2 * kSweepGapPx, -3 * kSweepGapPx,
                                 -(2 * line + kSweepGapPx));
}

double SweepChart::xOf(double size) const {
  const QRectF area = plotArea();
  return area.left() + area.width() * m_plot.x.shareOf(size);
}

double SweepChart::yOf(double value) const {
  const QRectF area = plotArea();
  return area.bottom() - area.height() * m_plot.y.shareOf(value);
}

QPointF SweepChart::placeOf(const SweepDot& dot) const { return {xOf(dot.size), yOf(dot.value)}; }

QString SweepChart::valueText(double value) const {
  return m_plot.isRatio() ? QStringLiteral("%1×").arg(axisNumber(value)) : formatDurationNs(value);
}

std::vector<double> SweepChart::valueTicks() const {
  return m_plot.y.ticks(std::max(2, static_cast<int>(plotArea().height() / (1.8 * plotTextHeight()))));
}

// ------------------------------------------------------------------------------------------------------------- places

std::optional<SweepChart::Place> SweepChart::placeAt(QPointF position) const {
  std::optional<Place> found;
  double nearest = kSweepReachPx;
  for (std::size_t series = 0; series < m_plot.series.size(); ++series)
    for (std::size_t dot = 0; dot < m_plot.series[series].dots.size(); ++dot) {
      const double apart = QLineF(position, placeOf(m_plot.series[series].dots[dot])).length();
      if (apart > nearest) continue;
      nearest = apart;
      found = Place{series, dot};
    }
  return found;
}

QString SweepChart::wordsAt(QPointF position) const {
  const std::optional<Place> place = placeAt(position);
  return place ? at(*place).words : QString();
}

/// The dot of another line at this size, or the one that is nearest.
std::optional<SweepChart::Place> SweepChart::inSeries(std::ptrdiff_t series) const {
  if (series < 0 || series >= std::ssize(m_plot.series)) return std::nullopt;
  const auto index = static_cast<std::size_t>(series);
  const auto& dots = m_plot.series[index].dots;
  const double size = currentDot()->size;
  const auto apart = [size](const SweepDot& dot) { return std::abs(std::log(dot.size / size)); };
  return Place{index, static_cast<std::size_t>(std::ranges::min_element(dots, {}, apart) - dots.begin())};
}

/// Where a key leads; nullopt where it leads nowhere.
std::optional<SweepChart::Place> SweepChart::neighbour(int key) const {
  if (m_plot.isEmpty()) return std::nullopt;
  if (!m_cursor) return Place{};
  const std::size_t numDots = m_plot.series[m_cursor->series].dots.size();
  const auto series = static_cast<std::ptrdiff_t>(m_cursor->series);
  switch (key) {
    case Qt::Key_Left:
      return m_cursor->dot > 0 ? std::optional(Place{m_cursor->series, m_cursor->dot - 1}) : std::nullopt;
    case Qt::Key_Right:
      return m_cursor->dot + 1 < numDots ? std::optional(Place{m_cursor->series, m_cursor->dot + 1}) : std::nullopt;
    case Qt::Key_Up: return inSeries(series - 1);
    case Qt::Key_Down: return inSeries(series + 1);
    case Qt::Key_Home: return Place{m_cursor->series, 0};
    case Qt::Key_End: return Place{m_cursor->series, numDots - 1};
    default: return std::nullopt;
  }
}

bool SweepChart::isOwnKey(int key) {
  static constexpr int kKeys[] = {Qt::Key_Left, Qt::Key_Right, Qt::Key_Up,     Qt::Key_Down,
                                  Qt::Key_Home, Qt::Key_End,   Qt::Key_Return, Qt::Key_Enter};
  return std::ranges::find(kKeys, key) != std::end(kKeys);
}

void SweepChart::setCurrentRow(std::size_t row) {
  if (m_cursor && currentDot()->row == row) return;
  std::optional<Place> found;
  for (std::size_t series = 0; series < m_plot.series.size(); ++series)
    for (std::size_t dot = 0; dot < m_plot.series[series].dots.size(); ++dot)
      if (m_plot.series[series].dots[dot].row == row && (!found || (m_cursor && m_cursor->series == series)))
        found = Place{series, dot};
  m_cursor = found;
  describe();
  update();
}

void SweepChart::choose(const Place& place) {
  m_cursor = place;
  describe();
  update();
  Q_EMIT rowChosen(currentDot()->row);
}

/// The dot that the keys stand on, else the whole.
void SweepChart::describe() {
  if (const SweepDot* dot = currentDot()) return setAccessibleDescription(dot->words);
  if (m_plot.isEmpty()) return setAccessibleDescription(whyNothing());
  QStringList parts = {tr("%1 over %2").arg(nameOf(m_plot.quantity), m_plot.symbol),
                       counted(std::ssize(m_plot.series), tr("line"), tr("lines")),
                       counted(std::ssize(m_plot.sizes), tr("size"), tr("sizes"))};
  setAccessibleDescription(parts.join(QStringLiteral(", ")));
}

void SweepChart::keyPressEvent(QKeyEvent* event) {
  if (!isOwnKey(event->key())) return QWidget::keyPressEvent(event);
  if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) {
    if (currentDot()) Q_EMIT rowOpened(currentDot()->row);
    return;
  }
  const std::optional<Place> next = neighbour(event->key());
  if (!next) return;
  choose(*next);
  const QPointF below = placeOf(*currentDot()) + QPointF(kSweepReachPx, kSweepReachPx);
  QToolTip::showText(mapToGlobal(below.toPoint()), currentDot()->words, this);
}

bool SweepChart::event(QEvent* event) {
  takeOwnKey(*event, Qt::KeypadModifier, isOwnKey);
  return answerToolTip(*event, *this, [this](QPoint place) { return wordsAt(place); }) || QWidget::event(event);
}

void SweepChart::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return QWidget::mousePressEvent(event);
  if (const std::optional<Place> place = placeAt(event->position())) choose(*place);
}

void SweepChart::mouseDoubleClickEvent(QMouseEvent* event) {
  if (const std::optional<Place> place = placeAt(event->position())) Q_EMIT rowOpened(at(*place).row);
}

// ----------------------------------------------------------------------------------------------------------- painting

QColor SweepChart::colorOf(int look) const {
  const ThemeColors& c = m_theme.colors();
  const std::array colors = {c.forward, c.backward, c.activation, c.joint, c.elementwise, c.branch, c.neutral, c.error};
  return colors[static_cast<std::size_t>(look) % colors.size()];
}

void SweepChart::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.fillRect(rect(), m_theme.colors().base);
  painter.setFont(plotFont());
  if (m_plot.isEmpty()) return paintNothing(painter);
  paintAxes(painter);
  paintSizes(painter);
  if (m_plot.isRatio()) paintReference(painter);
  paintBorders(painter);
  for (const SweepSeries& series : m_plot.series) paintSeries(painter, series);
  paintCursor(painter);
  for (const LegendEntry& entry : legend()) paintLegend(painter, entry);
}

QString SweepChart::whyNothing() const {
  return m_plot.quantity == SweepQuantity::OverFirstRecipe
             ? tr("No comparison: measure the same size with two recipes.")
             : tr("No measurements yet.");
}

void SweepChart::paintNothing(QPainter& painter) const {
  painter.setPen(m_theme.colors().dimText);
  painter.drawText(QRectF(rect()).adjusted(kSweepGapPx, kSweepGapPx, -kSweepGapPx, -kSweepGapPx),
                   Qt::AlignCenter | Qt::TextWordWrap, whyNothing());
}

void SweepChart::paintAxes(QPainter& painter) const {
  const QRectF area = plotArea();
  const double line = plotTextHeight();
  const ThemeColors& colors = m_theme.colors();
  for (const double value : valueTicks()) {
    const double y = std::round(yOf(value)) + 0.5;
    painter.setPen(colors.grid);
    painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    painter.setPen(colors.dimText);
    painter.drawText(QRectF(0, y - line / 2, area.left() - kSweepGapPx, line), Qt::AlignRight | Qt::AlignVCenter,
                     valueText(value));
  }
  painter.setPen(colors.border);
  painter.drawLine(area.topLeft(), area.bottomLeft());
  painter.drawLine(area.bottomLeft(), area.bottomRight());
  painter.setPen(colors.dimText);
  painter.drawText(QRectF(kSweepGapPx, area.top() - line - kSweepGapPx, area.width(), line),
                   Qt::AlignLeft | Qt::AlignVCenter, nameOf(m_plot.quantity));
  painter.drawText(QRectF(area.left(), area.bottom() + line + 2, area.width(), line), Qt::AlignRight, m_plot.symbol);
}

/// Beside the sizes that were measured; where they are too close, not all of them.
void SweepChart::paintSizes(QPainter& painter) const {
  const QRectF area = plotArea();
  const double line = plotTextHeight();
  double free = -1e9;
  for (const double size : m_plot.sizes) {
    const double x = std::round(xOf(size)) + 0.5;
    const QString text = QString::number(size, 'f', 0);
    const double half = plotTextWidth(text) / 2.0;
    painter.setPen(m_theme.colors().grid);
    painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
    if (x - half < free) continue;
    free = x + half + 2 * kSweepGapPx;
    painter.setPen(m_theme.colors().dimText);
    painter.drawText(QRectF(x - half - 1, area.bottom() + 2, 2 * half + 2, line), Qt::AlignCenter, text);
  }
}

/// Where nothing is gained.
void SweepChart::paintReference(QPainter& painter) const {
  const QRectF area = plotArea();
  const double y = std::round(yOf(1.0)) + 0.5;
  painter.setPen(QPen(m_theme.colors().text, 1.2));
  painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
}

/// Lines that meet at one size write beneath each other.
void SweepChart::paintBorders(QPainter& painter) const {
  const QRectF area = plotArea();
  double y = area.top();
  for (const SweepBorder& border : m_plot.borders) {
    const double x = std::round(xOf(border.size)) + 0.5;
    const double wide = plotTextWidth(border.text) + 2;
    painter.setPen(QPen(colorOf(border.look), 1.4, Qt::DotLine));
    painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
    const double left = x + kSweepGapPx + wide > area.right() ? x - kSweepGapPx - wide : x + kSweepGapPx;
    const QRectF place(left, y, wide, plotTextHeight());
    painter.fillRect(place, faded(m_theme.colors().base, 0.8));
    painter.setPen(m_theme.colors().text);
    painter.drawText(place, Qt::AlignCenter, border.text);
    y += plotTextHeight();
  }
}

/// Hollow dots: not statistically significant.
void SweepChart::paintSeries(QPainter& painter, const SweepSeries& series) const {
  const QColor color = colorOf(series.look);
  QPolygonF line;
  for (const SweepDot& dot : series.dots) line.append(placeOf(dot));
  painter.setPen(QPen(color, 1.6, series.isDashed ? Qt::DashLine : Qt::SolidLine));
  painter.drawPolyline(line);
  painter.setPen(QPen(color, 1.4));
  for (const SweepDot& dot : series.dots) {
    paintWhisker(painter, dot);
    painter.setBrush(dot.isClear && !series.isDashed ? color : m_theme.colors().base);
    paintMark(painter, series.look, placeOf(dot), kRadiusPx);
    painter.setBrush(Qt::NoBrush);
  }
}

void SweepChart::paintWhisker(QPainter& painter, const SweepDot& dot) const {
  const double x = xOf(dot.size);
  const double low = yOf(dot.low);
  const double high = yOf(dot.high);
  if (low - high < 2.0) return;
  painter.drawLine(QPointF(x, low), QPointF(x, high));
  for (const double y : {low, high}) painter.drawLine(QPointF(x - kCapPx, y), QPointF(x + kCapPx, y));
}

void SweepChart::paintCursor(QPainter& painter) const {
  if (!currentDot()) return;
  painter.setPen(QPen(hasFocus() ? m_theme.colors().accent : m_theme.colors().text, hasFocus() ? 2.0 : 1.2));
  painter.setBrush(Qt::NoBrush);
  painter.drawEllipse(placeOf(*currentDot()), kRadiusPx + 4.5, kRadiusPx + 4.5);
}

void SweepChart::paintLegend(QPainter& painter, const LegendEntry& entry) const {
  const QColor color = entry.look ? colorOf(*entry.look) : m_theme.colors().text;
  const QPointF start = entry.place + QPointF(0, plotTextHeight() / 2);
  painter.setPen(QPen(color, 1.6, entry.isDashed ? Qt::DashLine : Qt::SolidLine));
  if (!entry.isHollow) painter.drawLine(start, start + QPointF(kLegendLinePx, 0));
  painter.setPen(QPen(color, 1.4));
  if (entry.isHollow) paintMark(painter, 0, start + QPointF(kLegendLinePx / 2, 0), kRadiusPx);
  painter.setBrush(color);
  if (entry.look) paintMark(painter, *entry.look, start + QPointF(kLegendLinePx / 2, 0), kRadiusPx);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(m_theme.colors().text);
  const QSizeF size(plotTextWidth(entry.text) + 2, plotTextHeight());
  painter.drawText(QRectF(entry.place + QPointF(kLegendLinePx + kSweepGapPx, 0), size),
                   Qt::AlignLeft | Qt::AlignVCenter, entry.text);
}

}  // namespace fuseline::ui
