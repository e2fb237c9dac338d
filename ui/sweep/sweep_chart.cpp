// The chart of the sweep dock.
// SPDX-License-Identifier: Apache-2.0
#include "ui/sweep/sweep_chart.h"

#include "ui/sweep/sweep_painter.h"
#include "ui/theme/format.h"
#include "ui/widgets/view_events.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>

#include <algorithm>
#include <cmath>

namespace fuseline::ui {

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

QSize SweepChart::minimumSizeHint() const { return {220, 140}; }

QString SweepChart::wordsAt(QPointF position) const {
  const std::optional<SweepPlace> place = SweepFrame(m_plot, size()).placeAt(position);
  return place ? at(*place).words : QString();
}

/// The dot of another line at this size, or the one that is nearest.
std::optional<SweepPlace> SweepChart::inSeries(std::ptrdiff_t series) const {
  if (series < 0 || series >= std::ssize(m_plot.series)) return std::nullopt;
  const auto index = static_cast<std::size_t>(series);
  const auto& dots = m_plot.series[index].dots;
  const double size = currentDot()->size;
  const auto apart = [size](const SweepDot& dot) { return std::abs(std::log(dot.size / size)); };
  return SweepPlace{index, static_cast<std::size_t>(std::ranges::min_element(dots, {}, apart) - dots.begin())};
}

/// Where a key leads; nullopt where it leads nowhere.
std::optional<SweepPlace> SweepChart::neighbour(int key) const {
  if (m_plot.isEmpty()) return std::nullopt;
  if (!m_cursor) return SweepPlace{};
  const std::size_t numDots = m_plot.series[m_cursor->series].dots.size();
  const auto series = static_cast<std::ptrdiff_t>(m_cursor->series);
  switch (key) {
    case Qt::Key_Left:
      return m_cursor->dot > 0 ? std::optional(SweepPlace{m_cursor->series, m_cursor->dot - 1}) : std::nullopt;
    case Qt::Key_Right:
      return m_cursor->dot + 1 < numDots ? std::optional(SweepPlace{m_cursor->series, m_cursor->dot + 1})
                                         : std::nullopt;
    case Qt::Key_Up: return inSeries(series - 1);
    case Qt::Key_Down: return inSeries(series + 1);
    case Qt::Key_Home: return SweepPlace{m_cursor->series, 0};
    case Qt::Key_End: return SweepPlace{m_cursor->series, numDots - 1};
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
  std::optional<SweepPlace> found;
  for (std::size_t series = 0; series < m_plot.series.size(); ++series)
    for (std::size_t dot = 0; dot < m_plot.series[series].dots.size(); ++dot)
      if (m_plot.series[series].dots[dot].row == row && (!found || (m_cursor && m_cursor->series == series)))
        found = SweepPlace{series, dot};
  m_cursor = found;
  describe();
  update();
}

void SweepChart::choose(const SweepPlace& place) {
  m_cursor = place;
  describe();
  update();
  Q_EMIT rowChosen(currentDot()->row);
}

/// The dot that the keys stand on, else the whole.
void SweepChart::describe() {
  if (const SweepDot* dot = currentDot()) return setAccessibleDescription(dot->words);
  if (m_plot.isEmpty()) return setAccessibleDescription(whyNothing(m_plot));
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
  const std::optional<SweepPlace> next = neighbour(event->key());
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
  if (const std::optional<SweepPlace> place = SweepFrame(m_plot, size()).placeAt(event->position())) choose(*place);
}

void SweepChart::mouseDoubleClickEvent(QMouseEvent* event) {
  if (const std::optional<SweepPlace> place = SweepFrame(m_plot, size()).placeAt(event->position()))
    Q_EMIT rowOpened(at(*place).row);
}

void SweepChart::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const SweepFrame frame(m_plot, size());
  SweepPainter picture(painter, frame, m_theme);
  picture.paint();
  if (const SweepDot* dot = currentDot()) picture.paintCursor(*dot, hasFocus());
}

}  // namespace fuseline::ui
