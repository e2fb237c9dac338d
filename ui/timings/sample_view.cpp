// Draws strips of dots.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timings/sample_view.h"

#include "ui/widgets/plot_painting.h"
#include "ui/widgets/view_events.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QToolTip>

#include <algorithm>
#include <cmath>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr double kSampleGapPx = 6.0;
constexpr double kDotPx = 2.2;          // its radius
constexpr double kSampleReachPx = 7.0;  // of the pointer

}  // namespace

SampleView::SampleView(const Theme& theme, QWidget* parent) : QWidget(parent), m_theme(theme) {
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setAccessibleName(tr("Rounds of the selected row"));
  connect(&theme, &Theme::changed, this, qOverload<>(&QWidget::update));
}

void SampleView::setPlot(SamplePlot plot) {
  m_plot = std::move(plot);
  m_cursor.reset();
  m_hovered.reset();
  describe();
  update();
}

// ----------------------------------------------------------------------------------------------------------- geometry

QSize SampleView::minimumSizeHint() const { return {200, 110}; }

/// Between the title and the axis.
QRectF SampleView::plotArea() const {
  const double line = plotTextHeight();
  return QRectF(rect()).adjusted(kSampleGapPx, line + kSampleGapPx, -kSampleGapPx, -(2 * line + 2 * kSampleGapPx));
}

/// Beneath the plan's name.
QRectF SampleView::bandOf(std::size_t strip) const {
  const QRectF area = plotArea();
  const double height = area.height() / static_cast<double>(m_plot.strips.size());
  const double top = area.top() + height * static_cast<double>(strip);
  return {area.left(), top + plotTextHeight(), area.width(), std::max(1.0, height - plotTextHeight() - kSampleGapPx)};
}

/// Values outside of the axis are placed at its end.
double SampleView::xOf(double ns) const {
  const QRectF area = plotArea();
  return area.left() + area.width() * std::clamp(m_plot.axis.shareOf(m_plot.inUnit(ns)), 0.0, 1.0);
}

QPointF SampleView::placeOf(const Dot& dot) const {
  const SampleStrip& strip = m_plot.strips[dot.strip];
  const QRectF band = bandOf(dot.strip);
  const double share = (static_cast<double>(dot.round) + 0.5) / static_cast<double>(strip.ns.size());
  return {xOf(strip.ns[dot.round]), band.top() + band.height() * share};
}

std::optional<SampleView::Dot> SampleView::dotAt(QPointF place) const {
  std::optional<Dot> nearest;
  double least = kSampleReachPx;
  for (std::size_t strip = 0; strip < m_plot.strips.size(); ++strip)
    for (std::size_t round = 0; round < m_plot.strips[strip].ns.size(); ++round) {
      const QPointF way = placeOf({strip, round}) - place;
      const double distance = std::hypot(way.x(), way.y());
      if (distance >= least) continue;
      least = distance;
      nearest = Dot{strip, round};
    }
  return nearest;
}

QString SampleView::tipAt(QPointF place) const {
  if (const auto dot = dotAt(place)) return roundText(m_plot, m_plot.strips[dot->strip], dot->round);
  for (std::size_t strip = 0; strip < m_plot.strips.size(); ++strip)
    if (bandOf(strip).adjusted(0, -plotTextHeight(), 0, 0).contains(place))
      return wordsOf(m_plot, m_plot.strips[strip]);
  return {};
}

// -------------------------------------------------------------------------------------------------- pointer and keys

/// The dot that a key leads to.
SampleView::Dot SampleView::neighbour(int key) const {
  Dot dot = m_cursor.value_or(Dot{});
  const std::size_t lastStrip = m_plot.strips.size() - 1;
  if (m_cursor && key == Qt::Key_Up && dot.strip > 0) --dot.strip;
  if (m_cursor && key == Qt::Key_Down && dot.strip < lastStrip) ++dot.strip;
  const std::size_t last = m_plot.strips[dot.strip].ns.size() - 1;
  if (m_cursor && key == Qt::Key_Left && dot.round > 0) --dot.round;
  if (m_cursor && key == Qt::Key_Right) ++dot.round;
  if (key == Qt::Key_Home) dot.round = 0;
  if (key == Qt::Key_End) dot.round = last;
  dot.round = std::min(dot.round, last);
  return dot;
}

bool SampleView::event(QEvent* event) {
  const auto isOwnKey = [](int key) { return key >= Qt::Key_Home && key <= Qt::Key_Down; };
  takeOwnKey(*event, Qt::KeypadModifier, isOwnKey);
  return answerToolTip(*event, *this, [this](QPoint place) { return tipAt(place); }) || QWidget::event(event);
}

void SampleView::keyPressEvent(QKeyEvent* event) {
  if (event->key() < Qt::Key_Home || event->key() > Qt::Key_Down) return QWidget::keyPressEvent(event);
  if (m_plot.strips.empty()) return;
  m_cursor = neighbour(event->key());
  describe();
  update();
  const QString text = roundText(m_plot, m_plot.strips[m_cursor->strip], m_cursor->round);
  QToolTip::showText(mapToGlobal(placeOf(*m_cursor).toPoint()), text, this);
}

void SampleView::mouseMoveEvent(QMouseEvent* event) { hover(dotAt(event->position())); }

void SampleView::leaveEvent(QEvent*) { hover({}); }

void SampleView::hover(const std::optional<Dot>& dot) {
  if (std::exchange(m_hovered, dot) != dot) update();
}

/// The dot that the keys are on, else all strips.
void SampleView::describe() {
  QStringList sentences;
  if (m_cursor) sentences.append(roundText(m_plot, m_plot.strips[m_cursor->strip], m_cursor->round));
  for (const SampleStrip& strip : m_plot.strips)
    if (!m_cursor) sentences.append(wordsOf(m_plot, strip));
  if (m_plot.strips.empty()) sentences.append(tr("no rounds"));
  setAccessibleDescription(m_plot.title + QStringLiteral(": ") + sentences.join(QStringLiteral("; ")));
}

// ----------------------------------------------------------------------------------------------------------- painting

/// As the bars in the table.
QColor SampleView::colorOf(const SampleStrip& strip) const {
  return strip.isFused ? m_theme.colors().good : m_theme.colors().neutral;
}

void SampleView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.fillRect(rect(), m_theme.colors().base);
  painter.setFont(plotFont());
  painter.setPen(m_theme.colors().text);
  const QRectF title = QRectF(rect()).adjusted(kSampleGapPx, kSampleGapPx / 2, -kSampleGapPx, 0);
  painter.drawText(title, Qt::AlignLeft | Qt::AlignTop,
                   painter.fontMetrics().elidedText(m_plot.title, Qt::ElideMiddle, qRound(title.width())));
  if (m_plot.strips.empty()) {
    painter.setPen(m_theme.colors().dimText);
    painter.drawText(rect(), Qt::AlignCenter, tr("No rounds for this row."));
    return;
  }
  paintTimeAxis(painter, plotArea(), m_plot.axis, m_theme);
  for (std::size_t strip = 0; strip < m_plot.strips.size(); ++strip) paintStrip(painter, strip);
  if (m_cursor && hasFocus()) paintMarked(painter, *m_cursor);
  if (m_hovered) paintMarked(painter, *m_hovered);
  paintLegend(painter);
}

void SampleView::paintStrip(QPainter& painter, std::size_t strip) const {
  const SampleStrip& it = m_plot.strips[strip];
  const QRectF band = bandOf(strip);
  painter.setPen(m_theme.colors().text);
  painter.drawText(QRectF(band.left(), band.top() - plotTextHeight(), band.width(), plotTextHeight()),
                   Qt::AlignLeft | Qt::AlignVCenter, tr("%1: %2").arg(it.plan, m_plot.timeText(it.stats.median)));
  if (it.stats.hasSpread()) paintSums(painter, it, band);
  paintDots(painter, strip);
}

/// P5 to P95 as a line with ends, the quartiles as a box, the median as a full line and the mean as a dashed one.
void SampleView::paintSums(QPainter& painter, const SampleStrip& strip, const QRectF& band) const {
  const auto line = [&](double ns, double share) {
    const double inset = band.height() * (1.0 - share) / 2;
    painter.drawLine(QPointF(xOf(ns), band.top() + inset), QPointF(xOf(ns), band.bottom() - inset));
  };
  const SampleStats& stats = strip.stats;
  painter.setPen(QPen(colorOf(strip), 1.0));
  const double middle = band.center().y();
  painter.drawLine(QPointF(xOf(stats.percentile5), middle), QPointF(xOf(stats.percentile95), middle));
  line(stats.percentile5, 0.5);
  line(stats.percentile95, 0.5);
  const QRectF box(QPointF(xOf(stats.lowerQuartile), band.top()), QPointF(xOf(stats.upperQuartile), band.bottom()));
  painter.fillRect(box, faded(colorOf(strip), 0.22));
  painter.drawRect(box);
  painter.setPen(QPen(m_theme.colors().accent, 2.0));
  line(stats.median, 1.0);
  painter.setPen(QPen(m_theme.colors().error, 1.2, Qt::DashLine));
  line(strip.meanNs, 1.0);
}

/// Far ones are triangles at the end of the axis that they are beyond.
void SampleView::paintDots(QPainter& painter, std::size_t strip) const {
  const SampleStrip& it = m_plot.strips[strip];
  painter.setPen(Qt::NoPen);
  painter.setBrush(faded(colorOf(it), 0.85));
  for (std::size_t round = 0; round < it.ns.size(); ++round) {
    const QPointF place = placeOf({strip, round});
    const double share = m_plot.axis.shareOf(m_plot.inUnit(it.ns[round]));
    const double ahead = share > 1.0 ? 1.0 : share < 0.0 ? -1.0 : 0.0;
    if (ahead == 0.0)
      painter.drawEllipse(place, kDotPx, kDotPx);
    else
      painter.drawPolygon(QPolygonF({place + QPointF(ahead * 2 * kDotPx, 0), place + QPointF(0, -1.5 * kDotPx),
                                     place + QPointF(0, 1.5 * kDotPx)}));
  }
  painter.setBrush(Qt::NoBrush);
}

void SampleView::paintMarked(QPainter& painter, const Dot& dot) const {
  painter.setPen(QPen(m_theme.colors().accent, 1.8));
  painter.drawEllipse(placeOf(dot), 2 * kDotPx, 2 * kDotPx);
}

/// Legend of lines and box, as far as there is room, and the unit.
void SampleView::paintLegend(QPainter& painter) const {
  const ThemeColors& colors = m_theme.colors();
  const double line = plotTextHeight();
  const QRectF place(kSampleGapPx, height() - line - kSampleGapPx / 2, width() - 2 * kSampleGapPx, line);
  painter.setPen(colors.dimText);
  painter.drawText(place, Qt::AlignRight | Qt::AlignVCenter, unitText(m_plot.unit));
  double x = place.left();
  const double end = place.right() - plotTextWidth(unitText(m_plot.unit)) - kSampleGapPx;
  const auto add = [&](const QPen& pen, const QBrush& brush, double wide, const QString& text) {
    if (x + wide + kSampleGapPx + plotTextWidth(text) > end) return;
    painter.setPen(pen);
    painter.setBrush(brush);
    if (wide > 1.0)
      painter.drawRect(QRectF(x, place.top() + 2, wide, line - 4));
    else
      painter.drawLine(QPointF(x, place.top() + 1), QPointF(x, place.bottom() - 1));
    painter.setPen(colors.dimText);
    painter.drawText(QPointF(x + wide + kSampleGapPx / 2, place.bottom() - painter.fontMetrics().descent()), text);
    x += wide + 2 * kSampleGapPx + plotTextWidth(text);
  };
  add(QPen(colors.accent, 2.0), Qt::NoBrush, 1.0, tr("median"));
  add(QPen(colors.error, 1.2, Qt::DashLine), Qt::NoBrush, 1.0, tr("mean"));
  add(QPen(colors.neutral, 1.0), faded(colors.neutral, 0.22), 10.0, tr("quartiles"));
  painter.setBrush(Qt::NoBrush);
}

}  // namespace fuseline::ui
