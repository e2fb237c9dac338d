// Draws wires. A wire whose tensor could not be inferred is dashed.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/link_item.h"

#include "ui/canvas/metrics.h"
#include "ui/theme/format.h"
#include "ui/widgets/translated.h"

#include <QPainter>
#include <QStyleOptionGraphicsItem>

#include <algorithm>
#include <cmath>

namespace fuseline::ui {

namespace {

constexpr double kWireLabelHeightPx = 16.0;
constexpr double kMinLabelZoom = 0.45;
constexpr double kGlowWidthPx = 12.0;
constexpr double kLeastFontShare = 0.75;

constexpr double kPortGapPx = 4.0;     // between a label and the ports
constexpr double kLeastRoomPx = 56.0;  // of a wire between nodes that nearly touch

constexpr double kChipPaddingPx = 14.0;
constexpr auto kCommunicationCategory = "Communication";
constexpr int kLabelGroundAlpha = 225;  // the border of a hull does not cross the text

constexpr double kBendPx = 20.0;
constexpr double kBoundsPx = 13.0;  // around the path: its glow, and the cross of a broken wire

/// To the row above or below, far enough back that a curve would run across what stands between.
bool leadsToAnotherRow(QPointF from, QPointF to) {
  return to.x() < from.x() - kNodeWidthPx && std::abs(to.y() - from.y()) > 2 * kNodeHeightPx;
}

QFont labelFont() { return scaledFont(0.88); }

/// Smaller where the text would reach below the nodes at its ends, as far as it can still be read. Advances are rounded
/// to whole pixels, so that text in a smaller font may need more than its share of the width.
QFont fittedFont(const QFont& font, const QString& text, double widthPx) {
  constexpr double kStep = 0.97;
  const double least = font.pointSizeF() * kLeastFontShare;
  QFont fitted = font;
  for (double advance; (advance = QFontMetricsF(fitted).horizontalAdvance(text)) > widthPx;) {
    if (fitted.pointSizeF() <= least) break;
    fitted.setPointSizeF(std::max(least, fitted.pointSizeF() * std::min(kStep, widthPx / advance)));
  }
  return fitted;
}

QString shapeInBrackets(const Shape& shape, const RankPart& part) {
  return u'[' + partShape(shape, part, QStringLiteral(", ")) + u']';
}

/// After a shape, where ranks hold summands.
QString partialText(const RankPart& part) {
  return part.shard.kind == Shard::Kind::Summand ? translated(" partial") : QString();
}

}  // namespace

QString fullWireText(const TensorSpec& spec, const QString& quantized, const RankPart& part) {
  const QString text = shapeInBrackets(spec.shape, part) + u' ' + toQt(dtypeName(spec.dtype)) + partialText(part);
  return quantized.isEmpty() ? text : text + QStringLiteral(" → ") + quantized;
}

/// With round corners, smaller where the lane is near an end.
QPainterPath lanePath(QPointF from, QPointF to, double lane) {
  const double right = from.x() + kWireStubPx;
  const double left = to.x() - kWireStubPx;
  const double onward = left > right ? 1.0 : -1.0;
  const auto bendFor = [&](double end) { return std::min(kBendPx, std::abs(lane - end) / 2); };
  const double first = std::copysign(bendFor(from.y()), lane - from.y());
  const double last = std::copysign(bendFor(to.y()), to.y() - lane);
  const double turn = std::min(kBendPx, std::abs(left - right) / 2) * onward;
  QPainterPath path(from);
  path.lineTo(right - std::abs(first), from.y());
  path.quadTo(right, from.y(), right, from.y() + first);
  path.lineTo(right, lane - first);
  path.quadTo(right, lane, right + turn, lane);
  path.lineTo(left - turn, lane);
  path.quadTo(left, lane, left, lane + last);
  path.lineTo(left, to.y() - last);
  path.quadTo(left, to.y(), left + std::abs(last), to.y());
  path.lineTo(to);
  return path;
}

QPainterPath wirePath(QPointF from, QPointF to) {
  if (leadsToAnotherRow(from, to)) return lanePath(from, to, (from.y() + to.y()) / 2);
  const double span = std::abs(to.x() - from.x());
  const double reach = std::clamp(span * 0.5, 24.0, 90.0);
  QPainterPath path(from);
  path.cubicTo(from + QPointF(reach, 0), to - QPointF(reach, 0), to);
  return path;
}

LinkItem::LinkItem(Link link, const Theme& theme) : m_link(std::move(link)), m_theme(theme) {
  setFlag(ItemIsSelectable);
  setZValue(5);
}

bool LinkItem::showTensor(const std::optional<TensorSpec>& spec, const QString& chip, const QString& tip) {
  if (spec == m_spec && chip == m_chip && tip == m_quantizerTip) return false;
  prepareGeometryChange();
  m_spec = spec;
  m_chip = chip;
  m_quantizerTip = tip;
  m_labelPlaces.reset();
  showTip();
  update();
  return true;
}

bool LinkItem::showRanks(const RankPart& part, std::vector<WireCommunication> communication) {
  if (part == m_part && communication == m_communication) return false;
  prepareGeometryChange();
  m_part = part;
  m_communication = std::move(communication);
  m_labelPlaces.reset();
  showTip();
  update();
  return true;
}

void LinkItem::setLabels(WireLabels labels) {
  prepareGeometryChange();
  m_labels = labels;
  m_labelPlaces.reset();
  update();
}

void LinkItem::showTip() {
  QStringList lines = {m_spec ? fullWireText(*m_spec, m_chip) : QString(), m_quantizerTip,
                       m_spec ? placementText(m_spec->shape, m_part) : QString()};
  for (const WireCommunication& each : m_communication) lines.append(each.tip);
  lines.removeAll(QString());
  lines.removeDuplicates();
  setToolTip(lines.join(u'\n'));
}

double LinkItem::roomPx() const {
  const QPainterPath way = path();
  if (way.isEmpty()) return 0.0;
  return std::abs(way.currentPosition().x() - way.elementAt(0).x) - 2 * kPortRadiusPx - kPortGapPx;
}

bool LinkItem::saysAllInOneLine() const {
  return m_labels == WireLabels::Full && m_spec &&
         QFontMetricsF(labelFont()).horizontalAdvance(fullWireText(*m_spec, m_chip, m_part)) < roomPx();
}

QStringList LinkItem::labelLines() const {
  if (!m_spec || m_labels == WireLabels::Off) return {};
  const QString dtype = toQt(dtypeName(m_spec->dtype));
  const QString partial = partialText(m_part);
  if (m_labels == WireLabels::Short && m_part.ranks > 1)
    return {partShape(m_spec->shape, m_part, QString(u'×')), dtype + partial};
  if (m_labels == WireLabels::Short) return {formatShape(m_spec->shape).remove(u' '), dtype};
  if (saysAllInOneLine()) return {fullWireText(*m_spec, m_chip, m_part)};
  return {shapeInBrackets(m_spec->shape, m_part), m_chip.isEmpty() ? dtype : dtype + QStringLiteral(" →")};
}

void LinkItem::setDropTarget(bool isTarget) {
  m_isDropTarget = isTarget;
  update();
}

void LinkItem::setBroken(bool isBroken) {
  if (isBroken == m_isBroken) return;
  m_isBroken = isBroken;
  update();
}

void LinkItem::setCut(bool isCut) {
  if (isCut == m_isCut) return;
  m_isCut = isCut;
  update();
}

void LinkItem::setRoute(const QPainterPath& path) {
  if (path == this->path() && !m_pathBounds.isNull()) return;
  prepareGeometryChange();
  m_pathBounds = path.boundingRect().adjusted(-kBoundsPx, -kBoundsPx, kBoundsPx, kBoundsPx);
  setPath(path);
  m_labelPlaces.reset();
}

/// Around a point of the wire: a line above it, the others and the chip below. Digits are equally wide.
QRectF LinkItem::labelAreaAt(QPointF point) const {
  static const double characterPx = QFontMetricsF(labelFont()).horizontalAdvance(u'0');
  const QStringList lines = labelLines();
  double width = 0.0;
  for (const QString& line : lines)
    width = std::max(width, std::min(static_cast<double>(line.size()) * characterPx, std::max(roomPx(), kLeastRoomPx)));
  const bool hasChip = !m_chip.isEmpty() && !saysAllInOneLine();
  if (hasChip) width = std::max(width, static_cast<double>(m_chip.size()) * characterPx + kChipPaddingPx);
  double below = hasChip ? 2 * kWireLabelHeightPx + 8 : lines.size() > 1 ? kWireLabelHeightPx + 3 : 0.0;
  if (const QString collective = communicationText(); !collective.isEmpty()) {
    width = std::max(width, static_cast<double>(collective.size()) * characterPx + kChipPaddingPx);
    below += kWireLabelHeightPx + 5;
  }
  return {point.x() - width / 2, point.y() - kWireLabelHeightPx - 3, width, kWireLabelHeightPx + 3 + below};
}

/// Found again only when the path or the text is another: all wires are asked after each edit.
const std::vector<QRectF>& LinkItem::labelPlaces() {
  if (!m_labelPlaces) m_labelPlaces = findLabelPlaces();
  return *m_labelPlaces;
}

std::vector<QRectF> LinkItem::findLabelPlaces() const {
  if (labelLines().isEmpty()) return {};
  // The middle of a wire that is one symmetric curve needs no walk along it.
  constexpr int kElementsOfACurve = 4;
  const QPointF first = path().elementAt(0);
  const QPointF last = path().elementAt(path().elementCount() - 1);
  const bool isCurve = path().elementCount() == kElementsOfACurve;
  std::vector<QRectF> places = {labelAreaAt(isCurve ? (first + last) / 2 : path().pointAtPercent(0.5))};
  if (isCurve && std::abs(last.x() - first.x()) < 2 * places.front().width()) return places;
  for (const double part : {0.4, 0.6, 0.3, 0.7, 0.2, 0.8}) places.push_back(labelAreaAt(path().pointAtPercent(part)));
  return places;
}

void LinkItem::setLabelPlace(const std::optional<QRectF>& place) {
  if (place == m_labelPlace) return;
  prepareGeometryChange();
  m_labelPlace = place;
  update();
}

/// Where the wire runs between its lines.
QPointF LinkItem::labelPoint() const { return {labelArea().center().x(), labelArea().top() + kWireLabelHeightPx + 3}; }

QPainterPath LinkItem::shape() const {
  QPainterPathStroker stroker;
  stroker.setWidth(12);
  return stroker.createStroke(path());
}

QColor LinkItem::color() const {
  const ThemeColors& colors = m_theme.colors();
  if (m_isCut) return colors.error;
  if (isSelected() || m_isDropTarget) return colors.accent;
  if (m_isBroken) return colors.error;
  return m_spec ? m_theme.dtypeColor(dtypeName(m_spec->dtype)) : colors.dimText;
}

QPen LinkItem::pen() const {
  QPen pen(color(), isSelected() || m_isDropTarget || m_isCut ? 3.2 : 2.0);
  pen.setCapStyle(Qt::RoundCap);
  if (!m_spec || m_isBroken) pen.setStyle(Qt::DashLine);
  if (m_isCut) pen.setStyle(Qt::DotLine);
  return pen;
}

void LinkItem::paint(QPainter* painter, const QStyleOptionGraphicsItem* option, QWidget*) {
  painter->setRenderHint(QPainter::Antialiasing,
                         option->levelOfDetailFromTransform(painter->worldTransform()) >= kOverviewZoom);
  if (m_isDropTarget) paintGlow(*painter);
  painter->strokePath(path(), pen());
  if (m_isBroken) paintCross(*painter);
  if (option->levelOfDetailFromTransform(painter->worldTransform()) >= kOverviewZoom) paintCommunication(*painter);
  if (option->levelOfDetailFromTransform(painter->worldTransform()) <= kMinLabelZoom) return;
  if (!isLabelShown()) return;
  paintLabel(*painter);
  const bool hasChip = !m_chip.isEmpty() && !saysAllInOneLine();
  if (hasChip) paintChip(*painter);
  const double lines = hasChip ? 2 * kWireLabelHeightPx + 9 : labelLines().size() > 1 ? kWireLabelHeightPx + 4 : 1.0;
  if (const QString collective = communicationText(); !collective.isEmpty())
    paintPill(*painter, collective, labelPoint().y() + lines, m_theme.categoryColor(kCommunicationCategory));
}

QString LinkItem::communicationText() const {
  QStringList texts;
  for (const WireCommunication& each : m_communication) texts.append(each.collective);
  texts.removeAll(QString());
  texts.removeDuplicates();
  return texts.join(QStringLiteral(", "));
}

/// Arrows in both directions, on the wire beside the port of the op that communicates.
void LinkItem::paintCommunication(QPainter& painter) const {
  constexpr double kRadiusPx = 8.0;
  constexpr double kFromPortPx = 18.0;
  for (const WireCommunication& each : m_communication) {
    const double length = path().length();
    const double share = length <= 0.0 ? 0.5 : std::min(0.5, kFromPortPx / length);
    const QPointF center = path().pointAtPercent(each.isAtEnd ? 1.0 - share : share);
    const QColor color = m_theme.categoryColor(kCommunicationCategory);
    painter.setPen(QPen(m_theme.colors().canvas, 1.5));
    painter.setBrush(color);
    painter.drawEllipse(center, kRadiusPx, kRadiusPx);
    painter.setPen(QPen(textOn(color), 1.4, Qt::SolidLine, Qt::RoundCap));
    for (const double side : {-1.0, 1.0}) {
      const QPointF tip = center + side * QPointF(4.0, 2.2);
      painter.drawLine(center + side * QPointF(-4.0, 2.2), tip);
      painter.drawLine(tip, tip + side * QPointF(-2.4, 1.8));
      painter.drawLine(tip, tip + side * QPointF(-2.4, -1.8));
    }
  }
}

/// Seen beside the hand and the ghost of what it drags.
void LinkItem::paintGlow(QPainter& painter) const {
  QColor glow = m_theme.colors().accent;
  glow.setAlpha(130);
  QPen pen(glow, kGlowWidthPx, Qt::SolidLine, Qt::RoundCap);
  pen.setCosmetic(true);  // as wide however far the canvas is zoomed out
  painter.strokePath(path(), pen);
}

/// At its end, where the tensor is not accepted; larger where the canvas is zoomed out.
void LinkItem::paintCross(QPainter& painter) const {
  constexpr double kArmPx = 5.0;
  constexpr double kFromEndPx = 16.0;
  constexpr double kMostScale = 2.0;
  const double scale = std::min(kMostScale, 1.0 / std::max(painter.worldTransform().m11(), 0.01));
  const double arm = kArmPx * std::max(1.0, scale);
  const double length = std::max(path().length(), 1.0);
  const QPointF center = path().pointAtPercent(std::max(0.5, 1.0 - (kFromEndPx + arm) / length));
  painter.setPen(QPen(m_theme.colors().error, 2.4 * std::max(1.0, scale), Qt::SolidLine, Qt::RoundCap));
  painter.drawLine(center - QPointF(arm, arm), center + QPointF(arm, arm));
  painter.drawLine(center - QPointF(arm, -arm), center + QPointF(arm, -arm));
}

/// Below the dtype, as a filled pill: the tensor changes its format here.
void LinkItem::paintChip(QPainter& painter) const {
  paintPill(painter, m_chip, labelPoint().y() + kWireLabelHeightPx + 5.5, m_theme.colors().accent);
}

void LinkItem::paintPill(QPainter& painter, const QString& text, double top, const QColor& color) const {
  painter.setFont(labelFont());
  const double width = QFontMetricsF(painter.font()).horizontalAdvance(text) + kChipPaddingPx;
  const QRectF area(labelPoint().x() - width / 2, top, width, kWireLabelHeightPx + 2);
  painter.setPen(Qt::NoPen);
  painter.setBrush(color);
  painter.drawRoundedRect(area, area.height() / 2, area.height() / 2);
  painter.setPen(m_theme.colors().canvas);
  painter.drawText(area, Qt::AlignCenter, text);
}

/// The lines of the label, each in its font, as there is room.
std::vector<LinkItem::FittedLine> LinkItem::fittedLines() const {
  const double room = std::max(roomPx(), kLeastRoomPx);
  std::vector<FittedLine> lines;
  for (const QString& whole : labelLines()) {
    const QFont font = fittedFont(labelFont(), whole, room);
    lines.push_back({QFontMetricsF(font).elidedText(whole, Qt::ElideMiddle, room), font});
  }
  return lines;
}

void LinkItem::paintLabel(QPainter& painter) const {
  const QPointF middle = labelPoint();
  double top = middle.y() - kWireLabelHeightPx - 2.5;
  painter.setPen(m_theme.colors().dimText);
  for (const auto& [line, font] : fittedLines()) {
    painter.setFont(font);
    const double width = QFontMetricsF(font).horizontalAdvance(line) + 4;
    const QRectF area(middle.x() - width / 2, top, width, kWireLabelHeightPx);
    QColor ground = m_theme.colors().canvas;
    ground.setAlpha(kLabelGroundAlpha);
    painter.fillRect(area, ground);
    painter.drawText(area, Qt::AlignCenter, line);
    top = middle.y() + 2.5;
  }
}

}  // namespace fuseline::ui
