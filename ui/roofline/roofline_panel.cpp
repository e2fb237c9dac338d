// The roofline dock.
// SPDX-License-Identifier: Apache-2.0
#include "ui/roofline/roofline_panel.h"

#include "ui/runs/run_notes.h"
#include "ui/theme/format.h"
#include "ui/widgets/plot_painting.h"
#include "ui/widgets/view_events.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QLineF>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <QVBoxLayout>

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
constexpr double kRoofGapPx = 5.0;
constexpr double kWidestLabelPx = 170.0;
constexpr double kArrowHeadPx = 7.0;
constexpr double kFadedDot = 0.3;
constexpr double kKeyMarkPx = 5.0;
constexpr double kKeyLinePx = 22.0;
constexpr double kKeysApartPx = 16.0;

QString nameOf(const RooflineCeiling& ceiling) {
  return QStringLiteral("%1 %2").arg(ceiling.name, formatFlopRate(ceiling.gflops));
}

}  // namespace

RooflineView::RooflineView(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent), m_session(session), m_theme(theme) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Roofline"));
  connect(&session, &Session::selectionChanged, this, &RooflineView::followSelection);
  connect(&theme, &Theme::changed, this, qOverload<>(&QWidget::update));
}

void RooflineView::setPlot(RooflinePlot plot) {
  m_plot = std::move(plot);
  m_intensity = intensityRange(m_plot);
  m_speed = speedRange(m_plot);
  m_longestNs = 0.0;
  for (const RooflineDot& dot : m_plot.dots) m_longestNs = std::max(m_longestNs, dot.timeNs);
  m_cursor.reset();
  followSelection();
}

// ----------------------------------------------------------------------------------------------------------- geometry

QSize RooflineView::minimumSizeHint() const { return {220, 140}; }

QRectF RooflineView::plotArea() const {
  double numbers = plotTextWidth(tr("GFLOP/s"));
  for (const double power : m_speed.decades(height())) numbers = std::max(numbers, plotTextWidth(axisNumber(power)));
  const double line = plotTextHeight();
  return QRectF(rect()).adjusted(numbers + 2 * kRoofGapPx, line + 2 * kRoofGapPx, -2 * kRoofGapPx,
                                 -(2 * line + kRoofGapPx));
}

double RooflineView::xOf(double intensity) const {
  const QRectF area = plotArea();
  return area.left() + area.width() * m_intensity.shareOf(intensity);
}

double RooflineView::yOf(double gflops) const {
  const QRectF area = plotArea();
  return area.bottom() - area.height() * m_speed.shareOf(gflops);
}

double RooflineView::radiusOf(const RooflineDot& dot) const {
  return std::max(kLeastRadiusPx, kLargestRadiusPx * std::sqrt(dot.timeNs / m_longestNs));
}

QRectF RooflineView::areaOf(std::size_t dot) const {
  const double radius = radiusOf(m_plot.dots[dot]);
  return {centreOf(m_plot.dots[dot]) - QPointF(radius, radius), QSizeF(2 * radius, 2 * radius)};
}

// ------------------------------------------------------------------------------------------------------------- places

/// The longest first: what is drawn last, and met first, is the smallest.
std::vector<std::size_t> RooflineView::byTime() const {
  std::vector<std::size_t> order(m_plot.dots.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t dot) { return m_plot.dots[dot].timeNs; });
  return order;
}

std::optional<std::size_t> RooflineView::dotAt(QPointF position) const {
  std::optional<std::size_t> found;
  for (const std::size_t dot : byTime()) {
    const double apart = QLineF(position, centreOf(m_plot.dots[dot])).length();
    if (apart <= radiusOf(m_plot.dots[dot]) + kReachPx) found = dot;
  }
  return found;
}

QString RooflineView::tipAt(QPointF position) const {
  const auto dot = dotAt(position);
  return dot ? m_plot.dots[*dot].tip : QString();
}

bool RooflineView::isSelected(const RooflineDot& dot) const {
  return std::ranges::any_of(dot.owners, [&](const QString& id) { return m_session.selection().contains(id); });
}

bool RooflineView::hasSelection() const {
  return std::ranges::any_of(m_plot.dots, [&](const RooflineDot& dot) { return isSelected(dot); });
}

/// Wraps at neither end.
std::optional<std::size_t> RooflineView::besideInPlan(int by) const {
  const auto next = static_cast<std::ptrdiff_t>(*m_cursor) + by;
  if (next < 0 || next >= std::ssize(m_plot.dots)) return std::nullopt;
  const auto dot = static_cast<std::size_t>(next);
  return m_plot.dots[dot].isOfFusedPlan == currentDot()->isOfFusedPlan ? std::optional(dot) : std::nullopt;
}

/// Along an arrow, or to the same step.
std::optional<std::size_t> RooflineView::inOtherPlan() const {
  for (const RooflineArrow& arrow : m_plot.arrows) {
    if (arrow.from == *m_cursor) return arrow.to;
    if (arrow.to == *m_cursor) return arrow.from;
  }
  const RooflineDot& here = *currentDot();
  const auto same = std::ranges::find_if(m_plot.dots, [&](const RooflineDot& dot) {
    return dot.isOfFusedPlan != here.isOfFusedPlan && dot.isBackward == here.isBackward && dot.label == here.label;
  });
  if (same == m_plot.dots.end()) return std::nullopt;
  return static_cast<std::size_t>(same - m_plot.dots.begin());
}

/// Where a key leads; nullopt where it leads nowhere.
std::optional<std::size_t> RooflineView::neighbour(int key) const {
  if (m_plot.dots.empty()) return std::nullopt;
  if (!m_cursor || key == Qt::Key_Home) return 0;
  switch (key) {
    case Qt::Key_Left: return besideInPlan(-1);
    case Qt::Key_Right: return besideInPlan(1);
    case Qt::Key_Up:
    case Qt::Key_Down: return inOtherPlan();
    case Qt::Key_End: return m_plot.dots.size() - 1;
    default: return std::nullopt;
  }
}

// ----------------------------------------------------------------------------------------------------------- commands

bool RooflineView::isOwnKey(int key) {
  static constexpr int kKeys[] = {Qt::Key_Left, Qt::Key_Right, Qt::Key_Up, Qt::Key_Down, Qt::Key_Home, Qt::Key_End};
  return std::ranges::find(kKeys, key) != std::end(kKeys);
}

void RooflineView::select(std::size_t dot) {
  m_cursor = dot;
  const QStringList& owners = m_plot.dots[dot].owners;
  m_session.select(QSet<QString>(owners.begin(), owners.end()));
  describe();
  update();
}

/// Keys go on from what was selected elsewhere.
void RooflineView::followSelection() {
  if (!m_cursor || !isSelected(*currentDot())) {
    const auto selected = std::ranges::find_if(m_plot.dots, [&](const RooflineDot& dot) { return isSelected(dot); });
    m_cursor.reset();
    if (selected != m_plot.dots.end()) m_cursor = static_cast<std::size_t>(selected - m_plot.dots.begin());
  }
  describe();
  update();
}

/// The dot that the keys stand on, else the whole.
void RooflineView::describe() {
  if (const RooflineDot* dot = currentDot()) return setAccessibleDescription(dot->words);
  QStringList parts = {counted(std::ssize(m_plot.dots), tr("step"), tr("steps"))};
  if (m_plot.measured.isKnown()) parts.append(tr("memory %1").arg(formatBandwidth(m_plot.measured.memoryGBps)));
  for (const RooflineCeiling& ceiling : m_plot.measured.ceilings) parts.append(nameOf(ceiling));
  setAccessibleDescription(parts.join(QStringLiteral(", ")));
}

void RooflineView::keyPressEvent(QKeyEvent* event) {
  if (!isOwnKey(event->key())) return QWidget::keyPressEvent(event);
  const auto next = neighbour(event->key());
  if (!next) return;
  select(*next);
  QToolTip::showText(mapToGlobal(areaOf(*next).bottomRight().toPoint()), currentDot()->tip, this);
}

bool RooflineView::event(QEvent* event) {
  takeOwnKey(*event, Qt::KeypadModifier, isOwnKey);
  return answerToolTip(*event, *this, [this](QPoint place) { return tipAt(place); }) || QWidget::event(event);
}

void RooflineView::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return QWidget::mousePressEvent(event);
  if (const auto dot = dotAt(event->position()))
    select(*dot);
  else
    m_session.select({});
}

// ----------------------------------------------------------------------------------------------------------- painting

void RooflineView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.fillRect(rect(), m_theme.colors().base);
  if (m_plot.dots.empty()) return;
  paintAxes(painter);
  painter.setFont(plotFont());
  if (m_plot.published.isKnown()) paintPublished(painter);
  if (m_plot.measured.isKnown()) paintMemoryRoof(painter);
  if (m_plot.measured.isKnown()) paintCeilings(painter);
  paintArrows(painter, false);
  for (const std::size_t dot : byTime())
    if (!isSelected(m_plot.dots[dot])) paintDot(painter, m_plot.dots[dot]);
  paintArrows(painter, true);
  for (const std::size_t dot : byTime())
    if (isSelected(m_plot.dots[dot])) paintDot(painter, m_plot.dots[dot]);
  paintLabels(painter);
  paintLegend(painter);
}

void RooflineView::paintAxes(QPainter& painter) const {
  const QRectF area = plotArea();
  const double line = plotTextHeight();
  const ThemeColors& colors = m_theme.colors();
  painter.setFont(plotFont());
  for (const double power : m_intensity.decades(static_cast<int>(area.width() / (4 * line)))) {
    const double x = std::round(xOf(power)) + 0.5;
    painter.setPen(colors.grid);
    painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
    painter.setPen(colors.dimText);
    painter.drawText(QRectF(x - 2 * line, area.bottom() + 2, 4 * line, line), Qt::AlignCenter, axisNumber(power));
  }
  for (const double power : m_speed.decades(static_cast<int>(area.height() / (1.5 * line)))) {
    const double y = std::round(yOf(power)) + 0.5;
    painter.setPen(colors.grid);
    painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    painter.setPen(colors.dimText);
    painter.drawText(QRectF(0, y - line / 2, area.left() - kRoofGapPx, line), Qt::AlignRight | Qt::AlignVCenter,
                     axisNumber(power));
  }
  painter.setPen(colors.border);
  painter.drawLine(area.topLeft(), area.bottomLeft());
  painter.drawLine(area.bottomLeft(), area.bottomRight());
  painter.setPen(colors.dimText);
  painter.drawText(QRectF(kRoofGapPx, kRoofGapPx, area.width(), line), Qt::AlignLeft | Qt::AlignVCenter, tr("GFLOP/s"));
  painter.drawText(QRectF(area.left(), area.bottom() + line + 2, area.width(), line), Qt::AlignRight,
                   tr("FLOP per byte of the least traffic"));
}

/// From the lower end to where it meets the highest ceiling; nothing: it is not in sight.
std::optional<QLineF> RooflineView::memoryRoof() const {
  if (!m_plot.measured.isKnown()) return std::nullopt;
  const double first = std::max(m_intensity.low, m_speed.low / m_plot.measured.memoryGBps);
  const double last = std::min({m_intensity.high, m_speed.high / m_plot.measured.memoryGBps,
                                m_plot.measured.ridge() > 0.0 ? m_plot.measured.ridge() : m_intensity.high});
  if (last <= first) return std::nullopt;
  return QLineF(xOf(first), yOf(first * m_plot.measured.memoryGBps), xOf(last), yOf(last * m_plot.measured.memoryGBps));
}

QString RooflineView::memoryName() const { return tr("memory %1").arg(formatBandwidth(m_plot.measured.memoryGBps)); }

/// What the name along the roof covers, in pieces as long as they are high.
std::vector<QRectF> RooflineView::memoryNamePlaces() const {
  const std::optional<QLineF> roof = memoryRoof();
  const double nameLength = plotTextWidth(memoryName());
  if (!roof || nameLength >= roof->length()) return {};
  const double line = plotTextHeight();
  std::vector<QRectF> places;
  for (double along = (roof->length() - nameLength) / 2; along < (roof->length() + nameLength) / 2; along += line) {
    const QPointF at = roof->pointAt(along / roof->length());
    places.emplace_back(at.x() - line / 2, at.y() - line - 2, line, line + 2);
  }
  return places;
}

/// With its name along it.
void RooflineView::paintMemoryRoof(QPainter& painter) const {
  const std::optional<QLineF> roof = memoryRoof();
  if (!roof) return;
  const QPointF from = roof->p1();
  const QPointF to = roof->p2();
  painter.setPen(QPen(m_theme.colors().text, 1.5));
  painter.drawLine(from, to);
  painter.save();
  painter.translate(from);
  painter.rotate(std::atan2(to.y() - from.y(), to.x() - from.x()) * 180.0 / std::numbers::pi);
  const double length = QLineF(from, to).length();
  const QString name = memoryName();
  if (plotTextWidth(name) < length)
    painter.drawText(QRectF(0, -plotTextHeight() - 2, length, plotTextHeight()), Qt::AlignCenter, name);
  painter.restore();
}

/// At the right end of each ceiling; below it where there is no room above.
std::vector<QRectF> RooflineView::ceilingNames() const {
  const QRectF area = plotArea();
  const double line = plotTextHeight();
  double occupied = -line;
  std::vector<QRectF> places;
  for (const RooflineCeiling& ceiling : m_plot.measured.ceilings) {
    const double y = yOf(ceiling.gflops);
    const double top = y - line - 1 >= occupied ? y - line - 1 : y + 1;
    const double width = plotTextWidth(nameOf(ceiling));
    places.emplace_back(area.right() - width, top, width, line);
    occupied = top + line;
  }
  return places;
}

/// Each from its own ridge on, dashed where a higher one is above it.
void RooflineView::paintCeilings(QPainter& painter) const {
  const QRectF area = plotArea();
  const std::vector<QRectF> names = ceilingNames();
  for (std::size_t i = 0; i < m_plot.measured.ceilings.size(); ++i) {
    const RooflineCeiling& ceiling = m_plot.measured.ceilings[i];
    const double y = yOf(ceiling.gflops);
    const double ridge = std::max(area.left(), xOf(ceiling.gflops / m_plot.measured.memoryGBps));
    painter.setPen(QPen(m_theme.colors().text, i == 0 ? 1.5 : 1.0, i == 0 ? Qt::SolidLine : Qt::DashLine));
    painter.drawLine(QPointF(ridge, y), QPointF(area.right(), y));
    painter.drawText(names[i], Qt::AlignCenter, nameOf(ceiling));
  }
}

/// Dotted and without names, which those measured beside them have.
void RooflineView::paintPublished(QPainter& painter) const {
  const RooflineLines& lines = m_plot.published;
  const QRectF area = plotArea();
  painter.setPen(QPen(m_theme.colors().dimText, 1.0, Qt::DotLine));
  painter.save();
  painter.setClipRect(area);
  const double ridge = lines.ridge() > 0.0 ? lines.ridge() : m_intensity.high;
  painter.drawLine(QPointF(xOf(m_intensity.low), yOf(m_intensity.low * lines.memoryGBps)),
                   QPointF(xOf(ridge), yOf(ridge * lines.memoryGBps)));
  for (const RooflineCeiling& ceiling : lines.ceilings)
    painter.drawLine(QPointF(xOf(ceiling.gflops / lines.memoryGBps), yOf(ceiling.gflops)),
                     QPointF(area.right(), yOf(ceiling.gflops)));
  painter.restore();
}

void RooflineView::paintArrows(QPainter& painter, bool isMarked) const {
  const ThemeColors& colors = m_theme.colors();
  const QPen pen = isMarked ? QPen(colors.accent, 1.8) : QPen(faded(colors.dimText, hasSelection() ? 0.25 : 0.6), 1.0);
  for (const RooflineArrow& arrow : m_plot.arrows)
    if (isMarked == (isSelected(m_plot.dots[arrow.from]) && isSelected(m_plot.dots[arrow.to])))
      paintArrow(painter, arrow, pen);
}

/// From border to border; dots that touch have none.
void RooflineView::paintArrow(QPainter& painter, const RooflineArrow& arrow, const QPen& pen) const {
  const RooflineDot& from = m_plot.dots[arrow.from];
  const RooflineDot& to = m_plot.dots[arrow.to];
  const QLineF whole(centreOf(from), centreOf(to));
  const double free = whole.length() - radiusOf(from) - radiusOf(to);
  if (free < kArrowHeadPx) return;
  const QLineF shaft(whole.pointAt(radiusOf(from) / whole.length()),
                     whole.pointAt(1.0 - radiusOf(to) / whole.length()));
  painter.setPen(pen);
  painter.drawLine(shaft);
  for (const double angle : {155.0, -155.0}) {
    QLineF barb = QLineF::fromPolar(kArrowHeadPx, shaft.angle() + angle);
    barb.translate(shaft.p2());
    painter.drawLine(barb);
  }
}

/// Forward a circle, backward a diamond; filled in the fused plan. What is not selected fades where something is.
void RooflineView::paintDot(QPainter& painter, const RooflineDot& dot) const {
  const ThemeColors& colors = m_theme.colors();
  const bool isMarked = isSelected(dot);
  const double strength = hasSelection() && !isMarked ? kFadedDot : 1.0;
  const QColor color = m_theme.categoryColor(dot.category);
  const QPointF centre = centreOf(dot);
  const double radius = radiusOf(dot);
  const auto draw = [&](double size) {
    dot.isBackward ? void(painter.drawPolygon(diamond(centre, size))) : painter.drawEllipse(centre, size, size);
  };
  painter.setBrush(faded(color, strength * (dot.isOfFusedPlan ? 0.75 : 0.12)));
  painter.setPen(QPen(isMarked ? colors.accent : faded(color, strength), isMarked ? 2.5 : 1.6));
  draw(radius);
  painter.setBrush(Qt::NoBrush);
  if (currentDot() != &dot || !hasFocus()) return;
  painter.setPen(QPen(colors.text, 1.2, Qt::DotLine));
  draw(radius + 3.5);
}

/// On the line above the plot, as far as there is room.
void RooflineView::paintLegend(QPainter& painter) const {
  const ThemeColors& colors = m_theme.colors();
  const double middle = kRoofGapPx + plotTextHeight() / 2;
  double x = 2 * kRoofGapPx + plotTextWidth(tr("GFLOP/s")) + kKeysApartPx;
  const auto add = [&](double markPx, const QString& words, auto draw) {
    const double end = x + markPx + kRoofGapPx + plotTextWidth(words);
    if (end > width()) return;
    painter.setPen(QPen(colors.dimText, 1.4));
    painter.setBrush(Qt::NoBrush);
    draw(QPointF(x, middle));
    painter.setPen(colors.dimText);
    painter.drawText(QRectF(x + markPx + kRoofGapPx, kRoofGapPx, end - x, plotTextHeight()),
                     Qt::AlignLeft | Qt::AlignVCenter, words);
    x = end + kKeysApartPx;
  };
  const auto addDot = [&](const QString& words, const QColor& fill, bool isDiamond) {
    add(2 * kKeyMarkPx, words, [&, fill, isDiamond](QPointF left) {
      const QPointF centre = left + QPointF(kKeyMarkPx, 0);
      painter.setBrush(fill);
      isDiamond ? void(painter.drawPolygon(diamond(centre, kKeyMarkPx)))
                : painter.drawEllipse(centre, kKeyMarkPx, kKeyMarkPx);
    });
  };
  const auto addLine = [&](const QString& words, const QPen& pen) {
    add(kKeyLinePx, words, [&, pen](QPointF left) {
      painter.setPen(pen);
      painter.drawLine(left, left + QPointF(kKeyLinePx, 0));
    });
  };
  addDot(tr("forward, unfused"), Qt::transparent, false);
  addDot(tr("forward, fused"), colors.dimText, false);
  addDot(tr("backward"), colors.dimText, true);
  if (!m_plot.arrows.empty()) addLine(tr("to the fused op that does its work"), QPen(faded(colors.dimText, 0.6), 1.0));
  addLine(tr("measured roof"), QPen(colors.text, 1.5));
  if (m_plot.published.isKnown()) addLine(tr("roof by the data sheet"), QPen(colors.dimText, 1.0, Qt::DotLine));
  add(0.0, tr("area: time"), [](QPointF) {});
}

/// The other dots of its plan that stand on a dot: their names would stand around it without telling whose they are.
std::vector<std::size_t> RooflineView::coveredBy(std::size_t index) const {
  std::vector<std::size_t> covered;
  for (std::size_t other = 0; other < m_plot.dots.size(); ++other) {
    const bool isOfSamePlan = m_plot.dots[other].isOfFusedPlan == m_plot.dots[index].isOfFusedPlan;
    if (other != index && isOfSamePlan && areaOf(other).intersects(areaOf(index))) covered.push_back(other);
  }
  return covered;
}

/// Of what is selected and of the longest steps of the fused plan, as far as there is room. Where dots stand on each
/// other, of the longest only, with the number of the others.
void RooflineView::paintLabels(QPainter& painter) const {
  std::vector<std::size_t> order = byTime();
  std::ranges::stable_partition(order, [&](std::size_t dot) { return isSelected(m_plot.dots[dot]); });
  std::vector<QRectF> taken = ceilingNames();
  std::ranges::copy(memoryNamePlaces(), std::back_inserter(taken));
  for (std::size_t dot = 0; dot < m_plot.dots.size(); ++dot) taken.push_back(areaOf(dot));
  std::set<std::size_t> told;
  const bool hasFused = std::ranges::any_of(m_plot.dots, &RooflineDot::isOfFusedPlan);
  const QFontMetricsF metrics(plotFont());
  painter.setFont(plotFont());
  for (const std::size_t index : order) {
    const RooflineDot& dot = m_plot.dots[index];
    if (!isSelected(dot) && (dot.isOfFusedPlan != hasFused || told.contains(index))) continue;
    const std::vector<std::size_t> covered = coveredBy(index);
    const QString others = covered.empty() ? QString() : QStringLiteral(" +%1").arg(covered.size());
    const QString text = metrics.elidedText(dot.label, Qt::ElideRight, kWidestLabelPx) + others;
    const std::optional<QRectF> place =
        freePlace(areaOf(index), QSizeF(metrics.horizontalAdvance(text), metrics.height()), taken);
    if (!place) continue;
    taken.push_back(*place);
    told.insert(covered.begin(), covered.end());
    const bool isFaded = hasSelection() && !isSelected(dot);
    painter.setPen(isFaded ? m_theme.colors().disabledText : m_theme.colors().text);
    painter.fillRect(*place, faded(m_theme.colors().base, 0.75));
    painter.drawText(*place, Qt::AlignCenter, text);
  }
}

/// Beside, above or below a dot, where nothing is yet.
std::optional<QRectF> RooflineView::freePlace(const QRectF& dot, QSizeF size, const std::vector<QRectF>& taken) const {
  const double middleX = dot.center().x() - size.width() / 2;
  const double middleY = dot.center().y() - size.height() / 2;
  for (const QPointF corner : {QPointF(dot.right() + 3, middleY), QPointF(dot.left() - 3 - size.width(), middleY),
                               QPointF(middleX, dot.top() - 1 - size.height()), QPointF(middleX, dot.bottom() + 1)}) {
    const QRectF place(corner, size);
    const bool isFree = std::ranges::none_of(taken, [&](const QRectF& other) { return other.intersects(place); });
    if (isFree && plotArea().contains(place)) return place;
  }
  return std::nullopt;
}

// -------------------------------------------------------------------------------------------------------------- panel

namespace {

QString textOf(const RooflineLines& lines) {
  QStringList roofs = {RooflinePanel::tr("memory %1").arg(formatBandwidth(lines.memoryGBps))};
  for (const RooflineCeiling& ceiling : lines.ceilings) roofs.append(nameOf(ceiling));
  return roofs.join(QStringLiteral(", "));
}

QString roofsCaption(const RunRecord& record, const RooflinePlot& plot) {
  if (!plot.measured.isKnown())
    return record.roofsNote.empty() ? RooflinePanel::tr("No roofs: this run did not measure them")
                                    : RooflinePanel::tr("No roofs: %1").arg(toQt(record.roofsNote));
  return RooflinePanel::tr("Roofs measured in this run: %1").arg(textOf(plot.measured));
}

}  // namespace

RooflinePanel::RooflinePanel(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_theme(theme),
      m_caption(new QLabel(this)),
      m_empty(new QLabel(this)),
      m_view(new RooflineView(session, theme, this)) {
  m_caption->setContentsMargins(10, 6, 10, 6);
  m_caption->setTextFormat(Qt::RichText);
  m_caption->setWordWrap(true);
  m_caption->setToolTip(
      tr("Traffic is the least that a step needs, operations are by definition. A dot above the memory's roof has its "
         "data in a cache.\nLeft and Right walk the steps of a plan, Up and Down go to the other plan"));
  m_empty->setAlignment(Qt::AlignCenter);
  m_empty->setWordWrap(true);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(m_caption);
  layout->addWidget(m_view, 1);
  layout->addWidget(m_empty, 1);
  for (const auto signal : {&Session::runFinished, &Session::documentReplaced})
    connect(&session, signal, this, &RooflinePanel::refresh);
  connect(&session, &Session::analysisChanged, this, &RooflinePanel::refresh);
  for (const auto signal : {&Session::documentChanged, &Session::passChanged})
    connect(&session, signal, this, &RooflinePanel::refreshCaption);
  connect(&theme, &Theme::changed, this, &RooflinePanel::refreshCaption);
  refresh();
}

QString RooflinePanel::emptyText() const {
  const auto& run = m_session.lastRun();
  if (!run) return tr("Nothing measured yet. Press Run (Ctrl+Enter) to see how far each step is from its roof.");
  if (!m_view->plot().dots.empty()) return {};
  return run->record.settings.timesSteps()
             ? tr("No step of this run computes anything.")
             : tr("Steps of this run were not timed. Press Run (Ctrl+Enter) to see how far each is from its roof.");
}

/// Ops of the pipeline as it is now are those of the run only while nothing has changed.
void RooflinePanel::refresh() {
  const auto& run = m_session.lastRun();
  const Analysis& analysis = *m_session.analysis();
  const Graph* graph = run && !run->isStale && analysis.isRunnable() ? &analysis.graph() : nullptr;
  m_view->setPlot(run ? rooflinePlot(run->record, graph) : RooflinePlot());
  const QString nothing = emptyText();
  m_empty->setText(nothing);
  m_empty->setVisible(!nothing.isEmpty());
  m_view->setVisible(nothing.isEmpty());
  m_caption->setVisible(nothing.isEmpty());
  refreshCaption();
}

void RooflinePanel::refreshCaption() {
  const auto& run = m_session.lastRun();
  if (!run) return;
  QStringList parts = {roofsCaption(run->record, m_view->plot()).toHtmlEscaped()};
  if (const RooflineLines& published = m_view->plot().published; published.isKnown())
    parts.insert(1, tr("dotted, by NVIDIA's data sheet: %1").arg(textOf(published)));
  if (const int others = m_view->plot().numWithoutArithmetic; others > 0)
    parts.append(tr("not here: %1 only bytes").arg(counted(others, tr("step moves"), tr("steps move"))));
  QString text = parts.join(QStringLiteral(" · "));
  if (const QString stale = staleText(*run); !stale.isEmpty())
    text += QStringLiteral(" · <b style='color:%1'>%2</b>").arg(m_theme.colors().warning.name(), stale);
  m_caption->setText(text);
}

}  // namespace fuseline::ui
