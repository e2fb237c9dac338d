// The plot, from the axes up to the names of dots.
// SPDX-License-Identifier: Apache-2.0
#include "ui/roofline/roofline_painter.h"

#include "ui/theme/format.h"
#include "ui/widgets/plot_painting.h"
#include "ui/widgets/translated.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <numeric>
#include <set>

namespace fuseline::ui {

namespace {

constexpr double kLargestRadiusPx = 15.0;
constexpr double kLeastRadiusPx = 3.5;
constexpr double kReachPx = 3.0;  // around a dot, for the pointer
constexpr double kCeilingGapPx = 5.0;
constexpr double kWidestLabelPx = 170.0;
constexpr double kArrowHeadPx = 7.0;
constexpr double kFadedDot = 0.3;
constexpr double kKeyMarkPx = 5.0;
constexpr double kKeyLinePx = 22.0;
constexpr double kKeysApartPx = 16.0;

}  // namespace

QString nameOf(const RooflineCeiling& ceiling) {
  return QStringLiteral("%1 %2").arg(ceiling.name, formatFlopRate(ceiling.gflops));
}

// -------------------------------------------------------------------------------------------------------------- scale

RooflineScale::RooflineScale(const RooflinePlot& plot, const QRectF& rect)
    : m_plot(plot), m_rect(rect), m_intensity(intensityRange(plot)), m_speed(speedRange(plot)), m_area(areaIn()) {
  for (const RooflineDot& dot : plot.dots) m_longestNs = std::max(m_longestNs, dot.timeNs);
}

QRectF RooflineScale::areaIn() const {
  double numbers = 0.0;
  for (const double power : m_speed.decades(static_cast<int>(m_rect.height())))
    numbers = std::max(numbers, plotTextWidth(formatFlopRate(power)));
  const double line = plotTextHeight();
  return m_rect.adjusted(numbers + 2 * kCeilingGapPx, line + 2 * kCeilingGapPx, -2 * kCeilingGapPx,
                         -(2 * line + kCeilingGapPx));
}

double RooflineScale::xOf(double intensity) const {
  return m_area.left() + m_area.width() * m_intensity.shareOf(intensity);
}

double RooflineScale::yOf(double gflops) const { return m_area.bottom() - m_area.height() * m_speed.shareOf(gflops); }

double RooflineScale::radiusOf(const RooflineDot& dot) const {
  return std::max(kLeastRadiusPx, kLargestRadiusPx * std::sqrt(dot.timeNs / m_longestNs));
}

QRectF RooflineScale::areaOf(std::size_t dot) const {
  const double radius = radiusOf(m_plot.dots[dot]);
  return {centreOf(m_plot.dots[dot]) - QPointF(radius, radius), QSizeF(2 * radius, 2 * radius)};
}

/// The longest first: what is drawn last, and met first, is the smallest.
std::vector<std::size_t> RooflineScale::byTime() const {
  std::vector<std::size_t> order(m_plot.dots.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t dot) { return m_plot.dots[dot].timeNs; });
  return order;
}

std::optional<std::size_t> RooflineScale::dotAt(QPointF position) const {
  std::optional<std::size_t> found;
  for (const std::size_t dot : byTime()) {
    const double apart = QLineF(position, centreOf(m_plot.dots[dot])).length();
    if (apart <= radiusOf(m_plot.dots[dot]) + kReachPx) found = dot;
  }
  return found;
}

/// From the lower end to where it meets the highest ceiling; nothing: it is not in sight.
std::optional<QLineF> RooflineScale::bandwidthLine() const {
  if (!m_plot.measured.isKnown()) return std::nullopt;
  const double first = std::max(m_intensity.low, m_speed.low / m_plot.measured.memoryGBps);
  const double last = std::min({m_intensity.high, m_speed.high / m_plot.measured.memoryGBps,
                                m_plot.measured.ridge() > 0.0 ? m_plot.measured.ridge() : m_intensity.high});
  if (last <= first) return std::nullopt;
  return QLineF(xOf(first), yOf(first * m_plot.measured.memoryGBps), xOf(last), yOf(last * m_plot.measured.memoryGBps));
}

QString RooflineScale::memoryName() const {
  return translated("memory %1").arg(formatBandwidth(m_plot.measured.memoryGBps));
}

/// Area of the label along the memory line, as square pieces.
std::vector<QRectF> RooflineScale::memoryNamePlaces() const {
  const std::optional<QLineF> peak = bandwidthLine();
  const double nameLength = plotTextWidth(memoryName());
  if (!peak || nameLength >= peak->length()) return {};
  const double line = plotTextHeight();
  std::vector<QRectF> places;
  for (double along = (peak->length() - nameLength) / 2; along < (peak->length() + nameLength) / 2; along += line) {
    const QPointF at = peak->pointAt(along / peak->length());
    places.emplace_back(at.x() - line / 2, at.y() - line - 2, line, line + 2);
  }
  return places;
}

/// At the right end of each ceiling or, where a dot is, left of it; below the ceiling where there is no room above.
std::vector<QRectF> RooflineScale::ceilingNames() const {
  const double line = plotTextHeight();
  double occupied = -line;
  std::vector<QRectF> places;
  for (const RooflineCeiling& ceiling : m_plot.measured.ceilings) {
    const double y = yOf(ceiling.gflops);
    const double top = y - line - 1 >= occupied ? y - line - 1 : y + 1;
    const double ridge = std::max(m_area.left(), xOf(ceiling.gflops / m_plot.measured.memoryGBps));
    places.push_back(besideDots(QSizeF(plotTextWidth(nameOf(ceiling)), line), ridge, top));
    occupied = top + line;
  }
  return places;
}

/// As far right as no dot is; at the right end where dots are everywhere.
QRectF RooflineScale::besideDots(QSizeF size, double from, double top) const {
  const QRectF last(QPointF(m_area.right() - size.width(), top), size);
  for (QRectF place = last; place.left() >= from;) {
    double left = place.left();
    for (std::size_t dot = 0; dot < m_plot.dots.size(); ++dot)
      if (areaOf(dot).intersects(place)) left = std::min(left, areaOf(dot).left() - kCeilingGapPx - size.width());
    if (left == place.left()) return place;
    place.moveLeft(left);
  }
  return last;
}

QString RooflineScale::ridgeName() const {
  return translated("ridge %1 FLOP/byte").arg(formatThreeDigits(m_plot.measured.ridge()));
}

/// At the lower end of its line, to the right of it or, near the end, to the left: the ceilings have names at the top.
std::optional<QRectF> RooflineScale::ridgeNamePlace() const {
  const double ridge = m_plot.measured.ridge();
  if (ridge <= m_intensity.low || ridge >= m_intensity.high) return std::nullopt;
  const double x = xOf(ridge);
  const QSizeF size(plotTextWidth(ridgeName()), plotTextHeight());
  const bool fits = x + kCeilingGapPx + size.width() <= m_area.right();
  const double left = fits ? x + kCeilingGapPx : x - kCeilingGapPx - size.width();
  return QRectF(QPointF(left, m_area.bottom() - kCeilingGapPx - size.height()), size);
}

/// The other dots of its plan that stand on a dot: their names would stand around it without telling whose they are.
std::vector<std::size_t> RooflineScale::coveredBy(std::size_t index) const {
  std::vector<std::size_t> covered;
  for (std::size_t other = 0; other < m_plot.dots.size(); ++other) {
    const bool isOfSamePlan = m_plot.dots[other].isOfFusedPlan == m_plot.dots[index].isOfFusedPlan;
    if (other != index && isOfSamePlan && areaOf(other).intersects(areaOf(index))) covered.push_back(other);
  }
  return covered;
}

// ----------------------------------------------------------------------------------------------------------- painting

RooflinePainter::RooflinePainter(QPainter& painter, const RooflineScale& scale, const QSet<QString>& selection,
                                 std::optional<std::size_t> cursor, const Theme& theme)
    : m_painter(painter),
      m_scale(scale),
      m_selection(selection),
      m_cursor(cursor),
      m_hasSelection(std::ranges::any_of(scale.plot().dots, [&](const RooflineDot& dot) { return isSelected(dot); })),
      m_theme(theme) {}

void RooflinePainter::paint() {
  paintAxes();
  m_painter.setFont(plotFont());
  if (plot().published.isKnown()) paintPublished();
  if (plot().measured.isKnown()) paintBandwidthLine();
  if (plot().measured.isKnown()) paintCeilings();
  if (plot().measured.isKnown()) paintRidge();
  const std::vector<std::size_t> order = m_scale.byTime();
  for (const bool isMarked : {false, true}) {
    paintArrows(isMarked);
    for (const std::size_t dot : order)
      if (isSelected(plot().dots[dot]) == isMarked) paintDot(plot().dots[dot]);
  }
  paintLabels();
  paintLegend();
}

void RooflinePainter::paintAxes() {
  const QRectF area = m_scale.plotArea();
  const double line = plotTextHeight();
  const ThemeColors& colors = m_theme.colors();
  m_painter.setFont(plotFont());
  for (const double power : m_scale.intensity().decades(static_cast<int>(area.width() / (4 * line)))) {
    const double x = std::round(m_scale.xOf(power)) + 0.5;
    m_painter.setPen(colors.grid);
    m_painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
    m_painter.setPen(colors.dimText);
    const QString number = axisNumber(power);
    const double width = m_painter.fontMetrics().horizontalAdvance(number) + 2;
    const double left = std::min(x - width / 2, area.right() + kCeilingGapPx - width);  // the last one stays whole
    m_painter.drawText(QRectF(left, area.bottom() + 2, width, line), Qt::AlignCenter, number);
  }
  for (const double power : m_scale.speed().decades(static_cast<int>(area.height() / (1.5 * line)))) {
    const double y = std::round(m_scale.yOf(power)) + 0.5;
    m_painter.setPen(colors.grid);
    m_painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    m_painter.setPen(colors.dimText);
    m_painter.drawText(QRectF(0, y - line / 2, area.left() - kCeilingGapPx, line), Qt::AlignRight | Qt::AlignVCenter,
                       formatFlopRate(power));
  }
  m_painter.setPen(colors.border);
  m_painter.drawLine(area.topLeft(), area.bottomLeft());
  m_painter.drawLine(area.bottomLeft(), area.bottomRight());
  m_painter.setPen(colors.dimText);
  m_painter.drawText(QRectF(area.left(), area.bottom() + line + 2, area.width(), line), Qt::AlignRight,
                     translated("Arithmetic intensity (FLOP/byte, minimum traffic)"));
}

/// Dotted and without names, which those measured beside them have.
void RooflinePainter::paintPublished() {
  const RooflineLines& lines = plot().published;
  const QRectF area = m_scale.plotArea();
  m_painter.setPen(QPen(m_theme.colors().dimText, 1.0, Qt::DotLine));
  m_painter.save();
  m_painter.setClipRect(area);
  const double ridge = lines.ridge() > 0.0 ? lines.ridge() : m_scale.intensity().high;
  m_painter.drawLine(
      QPointF(m_scale.xOf(m_scale.intensity().low), m_scale.yOf(m_scale.intensity().low * lines.memoryGBps)),
      QPointF(m_scale.xOf(ridge), m_scale.yOf(ridge * lines.memoryGBps)));
  for (const RooflineCeiling& ceiling : lines.ceilings)
    m_painter.drawLine(QPointF(m_scale.xOf(ceiling.gflops / lines.memoryGBps), m_scale.yOf(ceiling.gflops)),
                       QPointF(area.right(), m_scale.yOf(ceiling.gflops)));
  m_painter.restore();
}

/// With its name along it.
void RooflinePainter::paintBandwidthLine() {
  const std::optional<QLineF> peak = m_scale.bandwidthLine();
  if (!peak) return;
  const QPointF from = peak->p1();
  const QPointF to = peak->p2();
  m_painter.setPen(QPen(m_theme.colors().text, 1.5));
  m_painter.drawLine(from, to);
  m_painter.save();
  m_painter.translate(from);
  m_painter.rotate(std::atan2(to.y() - from.y(), to.x() - from.x()) * 180.0 / std::numbers::pi);
  const double length = QLineF(from, to).length();
  const QString name = m_scale.memoryName();
  if (plotTextWidth(name) < length)
    m_painter.drawText(QRectF(0, -plotTextHeight() - 2, length, plotTextHeight()), Qt::AlignCenter, name);
  m_painter.restore();
}

/// Each from its own ridge on, dashed where a higher one is above it.
void RooflinePainter::paintCeilings() {
  const QRectF area = m_scale.plotArea();
  const std::vector<QRectF> names = m_scale.ceilingNames();
  for (std::size_t i = 0; i < plot().measured.ceilings.size(); ++i) {
    const RooflineCeiling& ceiling = plot().measured.ceilings[i];
    const double y = m_scale.yOf(ceiling.gflops);
    const double ridge = std::max(area.left(), m_scale.xOf(ceiling.gflops / plot().measured.memoryGBps));
    m_painter.setPen(QPen(m_theme.colors().text, i == 0 ? 1.5 : 1.0, i == 0 ? Qt::SolidLine : Qt::DashLine));
    m_painter.drawLine(QPointF(ridge, y), QPointF(area.right(), y));
    m_painter.drawText(names[i], Qt::AlignCenter, nameOf(ceiling));
  }
}

/// A dotted line from the corner down to the axis, with the intensity beside it.
void RooflinePainter::paintRidge() {
  const std::optional<QRectF> place = m_scale.ridgeNamePlace();
  if (!place) return;
  const double ridge = plot().measured.ridge();
  const QPointF corner(m_scale.xOf(ridge), m_scale.yOf(ridge * plot().measured.memoryGBps));
  m_painter.setPen(QPen(m_theme.colors().dimText, 1.0, Qt::DotLine));
  m_painter.drawLine(corner, QPointF(corner.x(), m_scale.plotArea().bottom()));
  m_painter.setPen(m_theme.colors().text);
  m_painter.drawText(*place, Qt::AlignCenter, m_scale.ridgeName());
}

void RooflinePainter::paintArrows(bool isMarked) {
  const ThemeColors& colors = m_theme.colors();
  const QPen pen = isMarked ? QPen(colors.accent, 1.8) : QPen(faded(colors.dimText, m_hasSelection ? 0.25 : 0.6), 1.0);
  for (const RooflineArrow& arrow : plot().arrows)
    if (isMarked == (isSelected(plot().dots[arrow.from]) && isSelected(plot().dots[arrow.to]))) paintArrow(arrow, pen);
}

/// From border to border; dots that touch have none.
void RooflinePainter::paintArrow(const RooflineArrow& arrow, const QPen& pen) {
  const RooflineDot& from = plot().dots[arrow.from];
  const RooflineDot& to = plot().dots[arrow.to];
  const QLineF whole(m_scale.centreOf(from), m_scale.centreOf(to));
  const double free = whole.length() - m_scale.radiusOf(from) - m_scale.radiusOf(to);
  if (free < kArrowHeadPx) return;
  const QLineF shaft(whole.pointAt(m_scale.radiusOf(from) / whole.length()),
                     whole.pointAt(1.0 - m_scale.radiusOf(to) / whole.length()));
  m_painter.setPen(pen);
  m_painter.drawLine(shaft);
  for (const double angle : {155.0, -155.0}) {
    QLineF barb = QLineF::fromPolar(kArrowHeadPx, shaft.angle() + angle);
    barb.translate(shaft.p2());
    m_painter.drawLine(barb);
  }
}

void RooflinePainter::paintShape(Phase phase, QPointF centre, double size) {
  switch (phase) {
    case Phase::Forward: return m_painter.drawEllipse(centre, size, size);
    case Phase::Backward: return void(m_painter.drawPolygon(diamond(centre, size)));
    case Phase::Optimizer: return m_painter.drawRect(QRectF(centre - QPointF(size, size), QSizeF(2 * size, 2 * size)));
  }
}

/// Forward a circle, backward a diamond, the optimizer a square; filled in the fused plan. What is not selected fades
/// where something is.
void RooflinePainter::paintDot(const RooflineDot& dot) {
  const ThemeColors& colors = m_theme.colors();
  const bool isMarked = isSelected(dot);
  const double strength = m_hasSelection && !isMarked ? kFadedDot : 1.0;
  const QColor color = m_theme.categoryColor(dot.category);
  const QPointF centre = m_scale.centreOf(dot);
  const double radius = m_scale.radiusOf(dot);
  const auto draw = [&](double size) { paintShape(dot.phase, centre, size); };
  m_painter.setBrush(faded(color, strength * (dot.isOfFusedPlan ? 0.75 : 0.12)));
  m_painter.setPen(QPen(isMarked ? colors.accent : faded(color, strength), isMarked ? 2.5 : 1.6));
  draw(radius);
  m_painter.setBrush(Qt::NoBrush);
  if (!m_cursor || &plot().dots[*m_cursor] != &dot) return;
  m_painter.setPen(QPen(colors.text, 1.2, Qt::DotLine));
  draw(radius + 3.5);
}

/// Labels of the selection and of the longest steps of the fused plan, if there is room. For overlapping dots, a label
/// of the longest step with the number of the others.
void RooflinePainter::paintLabels() {
  std::vector<std::size_t> order = m_scale.byTime();
  std::ranges::stable_partition(order, [&](std::size_t dot) { return isSelected(plot().dots[dot]); });
  std::vector<QRectF> taken = m_scale.ceilingNames();
  std::ranges::copy(m_scale.memoryNamePlaces(), std::back_inserter(taken));
  if (const std::optional<QRectF> ridge = m_scale.ridgeNamePlace()) taken.push_back(*ridge);
  for (std::size_t dot = 0; dot < plot().dots.size(); ++dot) taken.push_back(m_scale.areaOf(dot));
  std::set<std::size_t> told;
  const bool hasFused = std::ranges::any_of(plot().dots, &RooflineDot::isOfFusedPlan);
  const QFontMetricsF metrics(plotFont());
  m_painter.setFont(plotFont());
  for (const std::size_t index : order) {
    const RooflineDot& dot = plot().dots[index];
    if (!isSelected(dot) && (dot.isOfFusedPlan != hasFused || told.contains(index))) continue;
    const std::vector<std::size_t> covered = m_scale.coveredBy(index);
    const QString others = covered.empty() ? QString() : QStringLiteral(" +%1").arg(covered.size());
    const QString text = metrics.elidedText(dot.label, Qt::ElideRight, kWidestLabelPx) + others;
    const std::optional<QRectF> place =
        freePlace(m_scale.areaOf(index), QSizeF(metrics.horizontalAdvance(text), metrics.height()), taken);
    if (!place) continue;
    taken.push_back(*place);
    told.insert(covered.begin(), covered.end());
    const bool isFaded = m_hasSelection && !isSelected(dot);
    m_painter.setPen(isFaded ? m_theme.colors().disabledText : m_theme.colors().text);
    m_painter.fillRect(*place, faded(m_theme.colors().base, 0.75));
    m_painter.drawText(*place, Qt::AlignCenter, text);
  }
}

/// Beside, above or below a dot, where nothing is yet.
std::optional<QRectF> RooflinePainter::freePlace(const QRectF& dot, QSizeF size,
                                                 const std::vector<QRectF>& taken) const {
  const double middleX = dot.center().x() - size.width() / 2;
  const double middleY = dot.center().y() - size.height() / 2;
  for (const QPointF corner : {QPointF(dot.right() + 3, middleY), QPointF(dot.left() - 3 - size.width(), middleY),
                               QPointF(middleX, dot.top() - 1 - size.height()), QPointF(middleX, dot.bottom() + 1)}) {
    const QRectF place(corner, size);
    const bool isFree = std::ranges::none_of(taken, [&](const QRectF& other) { return other.intersects(place); });
    if (isFree && m_scale.plotArea().contains(place)) return place;
  }
  return std::nullopt;
}

/// On the line above the plot, as far as there is room.
void RooflinePainter::paintLegend() {
  const ThemeColors& colors = m_theme.colors();
  const double middle = kCeilingGapPx + plotTextHeight() / 2;
  double x = 2 * kCeilingGapPx;
  const auto add = [&](double markPx, const QString& words, auto draw) {
    const double end = x + markPx + kCeilingGapPx + plotTextWidth(words);
    if (end > m_scale.width()) return;
    m_painter.setPen(QPen(colors.dimText, 1.4));
    m_painter.setBrush(Qt::NoBrush);
    draw(QPointF(x, middle));
    m_painter.setPen(colors.dimText);
    m_painter.drawText(QRectF(x + markPx + kCeilingGapPx, kCeilingGapPx, end - x, plotTextHeight()),
                       Qt::AlignLeft | Qt::AlignVCenter, words);
    x = end + kKeysApartPx;
  };
  const auto addDot = [&](const QString& words, const QColor& fill, Phase phase) {
    add(2 * kKeyMarkPx, words, [&, fill, phase](QPointF left) {
      const QPointF centre = left + QPointF(kKeyMarkPx, 0);
      m_painter.setBrush(fill);
      paintShape(phase, centre, kKeyMarkPx);
    });
  };
  const auto addLine = [&](const QString& words, const QPen& pen) {
    add(kKeyLinePx, words, [&, pen](QPointF left) {
      m_painter.setPen(pen);
      m_painter.drawLine(left, left + QPointF(kKeyLinePx, 0));
    });
  };
  addDot(translated("forward, unfused"), Qt::transparent, Phase::Forward);
  addDot(translated("forward, fused"), colors.dimText, Phase::Forward);
  addDot(translated("backward"), colors.dimText, Phase::Backward);
  if (std::ranges::count(plot().dots, Phase::Optimizer, &RooflineDot::phase) > 0)
    addDot(translated("optimizer"), colors.dimText, Phase::Optimizer);
  if (!plot().arrows.empty())
    addLine(translated("from an op to the fused op that replaces it"), QPen(faded(colors.dimText, 0.6), 1.0));
  addLine(translated("measured peak"), QPen(colors.text, 1.5));
  if (plot().published.isKnown()) addLine(translated("data sheet peak"), QPen(colors.dimText, 1.0, Qt::DotLine));
  add(0.0, translated("dot area: time"), [](QPointF) {});
}

}  // namespace fuseline::ui
