// Draws a node: a quiet box, a stripe and a title tinted by category, ports on its sides, a badge for problems.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/node_item.h"

#include "ui/canvas/blocks/block_inside.h"
#include "ui/canvas/graph_scene.h"
#include "ui/canvas/link_item.h"
#include "ui/canvas/metrics.h"
#include "ui/canvas/port_shape.h"
#include "ui/canvas/status_badge.h"
#include "ui/numerics/numerics_model.h"
#include "ui/theme/format.h"
#include "ui/widgets/plot_painting.h"

#include <QPainter>
#include <QPainterPath>
#include <QRegularExpression>
#include <QStyleOptionGraphicsItem>

#include <algorithm>
#include <cmath>
#include <map>

namespace fuseline::ui {

namespace {

constexpr double kStripePx = 5.0;
constexpr double kOverviewStripePx = 24.0;
constexpr double kNodeMarginPx = 16.0;  // ports, badge and focus ring stick out
constexpr double kBadgePx = 20.0;
constexpr double kArrowPx = 20.0;
constexpr double kStatusInsetPx = 18.0;
// Where the overlay's row begins: the title is above it.
constexpr double kHeatTopPx = 31.0;
constexpr double kErrorWidthPx = 62.0;
constexpr double kErrorHeightPx = 17.0;
// Share of the category's color behind a title. More would make the text hard to read.
constexpr double kHeadShare = 0.2;
// Opacity of the box of a bypassed op; its texts must stay legible.
constexpr double kGhostOpacity = 0.5;

/// The largest size down to `least` of the wanted one at which the text fits.
QFont fittedFont(QFont font, const QString& text, double widthPx, double least) {
  const double wanted = font.pointSizeF();
  const double textWidth = QFontMetricsF(font).horizontalAdvance(text);
  if (textWidth > widthPx) font.setPointSizeF(std::max(wanted * least, wanted * widthPx / textWidth * 0.99));
  return font;
}

QFont sizedFont(QFont font, double factor) {
  font.setPointSizeF(font.pointSizeF() * factor);
  return font;
}

QPainterPath roundedBox(const QRectF& box, double radius) {
  QPainterPath path;
  path.addRoundedRect(box, radius, radius);
  return path;
}

/// Along the left side, its corners round as the box is: nothing needs to be clipped, which an SVG cannot.
QPainterPath stripeOf(double height) {
  constexpr QSizeF kArc(2 * kStripePx, 2 * kNodeCornerPx);
  QPainterPath path(QPointF(kStripePx, 0));
  path.arcTo(QRectF(QPointF(0, 0), kArc), 90, 90);
  path.arcTo(QRectF(QPointF(0, height - kArc.height()), kArc), 180, 90);
  path.closeSubpath();
  return path;
}

/// Behind the title, with round corners above.
QPainterPath headOf(double width) {
  constexpr double kDiameter = 2 * kNodeCornerPx;
  QPainterPath path(QPointF(0, kHeatTopPx));
  path.arcTo(QRectF(0, 0, kDiameter, kDiameter), 180, -90);
  path.arcTo(QRectF(width - kDiameter, 0, kDiameter, kDiameter), 90, -90);
  path.lineTo(width, kHeatTopPx);
  path.closeSubpath();
  return path;
}

}  // namespace

QColor headColor(const Theme& theme, std::string_view category) {
  return mixed(theme.categoryColor(category), theme.colors().node, kHeadShare);
}

QString breakableTitle(QString title) {
  for (qsizetype i = title.size() - 1; i > 0; --i)
    if (title[i].isUpper() && title[i - 1].isLower()) title.insert(i, QChar(0x200B));
  return title;
}

void drawFarTitle(QPainter& painter, const QRectF& area, const QString& title) {
  static const QRegularExpression kBreaks(QStringLiteral("[ \\x{200B}]"));
  const QFontMetricsF metrics(painter.font());
  const QStringList parts = title.split(kBreaks);
  const QString widest =
      *std::ranges::max_element(parts, {}, [&](const QString& part) { return metrics.horizontalAdvance(part); });
  painter.setFont(fittedFont(painter.font(), widest, area.width(), 0.6));
  constexpr int kWrapped = static_cast<int>(Qt::AlignCenter | Qt::TextWordWrap);
  const double height = QFontMetricsF(painter.font()).boundingRect(area, kWrapped, title).height();
  if (height > area.height()) painter.setFont(sizedFont(painter.font(), area.height() / height));
  const QFontMetricsF fitted(painter.font());
  if (fitted.horizontalAdvance(widest) <= area.width())
    painter.drawText(area, kWrapped, title);
  else
    painter.drawText(area, Qt::AlignCenter, fitted.elidedText(title, Qt::ElideRight, area.width()));
}

NodeItem::NodeItem(NodeLook look, const Theme& theme) : m_look(std::move(look)), m_theme(theme) {
  setFlags(ItemIsMovable | ItemIsSelectable | ItemSendsGeometryChanges);
  setZValue(10);
  showInside();
}

/// The ops and wires of a block that is open: to look at, and to go to with a double click.
void NodeItem::showInside() {
  qDeleteAll(childItems());
  if (!m_look.inside) return;
  std::map<std::string, NodeItem*> inner;
  for (const NodeLook& look : m_look.inside->looks) {
    auto* item = new NodeItem(look, m_theme);
    const Position& place = m_look.inside->places.at(look.id);
    item->setFlags({});
    item->setAcceptedMouseButtons(Qt::NoButton);
    item->setParentItem(this);
    item->setPos(place.x, place.y);
    inner[look.id] = item;
  }
  for (const Link& link : m_look.inside->links) {
    const auto from = inner.find(link.from.node);
    const auto to = inner.find(link.to.node);
    if (from == inner.end() || to == inner.end()) continue;
    const auto start = from->second->portPosition({link.from.node, link.from.port, true});
    const auto end = to->second->portPosition({link.to.node, link.to.port, false});
    if (!start || !end) continue;
    auto* wire = new LinkItem(link, m_theme);
    const auto& ports = from->second->look().outputs;
    const auto port = std::ranges::find(ports, link.from.port, &PortLook::name);
    if (port->dtype) wire->showTensor(TensorSpec{.dtype = *port->dtype}, {}, {});  // for the color: it has no label
    wire->setLabels(WireLabels::Off);
    wire->setFlags({});
    wire->setAcceptedMouseButtons(Qt::NoButton);
    wire->setZValue(-1);  // below the ops
    wire->setParentItem(this);
    wire->setRoute(wirePath(mapFromScene(*start), mapFromScene(*end)));
  }
}

const NodeItem* NodeItem::innerAt(QPointF scenePosition) const {
  for (const QGraphicsItem* child : childItems())
    if (const auto* inner = qgraphicsitem_cast<const NodeItem*>(child);
        inner && inner->sceneBox().contains(scenePosition))
      return inner;
  return nullptr;
}

/// Inputs and outputs are lower than ops and hang half the difference down: equal positions put main ports on one line.
QRectF NodeItem::box() const {
  const double drop = m_look.kind == NodeKind::Op ? 0 : (kNodeHeightPx - kEndHeightPx) / 2.0;
  return {QPointF(0, drop), m_look.size()};
}

QRectF NodeItem::boundingRect() const {
  return box().adjusted(-kNodeMarginPx, -kNodeMarginPx, kNodeMarginPx, kNodeMarginPx);
}

bool NodeItem::setLook(NodeLook look) {
  if (look == m_look) return false;
  prepareGeometryChange();
  const bool isInsideOther = look.inside != m_look.inside;
  m_look = std::move(look);
  if (isInsideOther) showInside();
  update();
  return true;
}

QPointF NodeItem::portPosition(bool isOutput, std::size_t index) const {
  const double firstY = kNodeHeightPx / 2.0;
  const double lastY = box().height() - kPortPitchPx * 0.6;
  const double y = index == 0 ? firstY : std::min(firstY + kPortPitchPx * (static_cast<double>(index) + 0.5), lastY);
  return {isOutput ? box().right() : box().left(), y};
}

std::optional<QPointF> NodeItem::portPosition(const PortRef& port) const {
  const auto& ports = port.isOutput ? m_look.outputs : m_look.inputs;
  const auto found = std::ranges::find(ports, port.port, &PortLook::name);
  if (found == ports.end()) return std::nullopt;
  return mapToScene(portPosition(port.isOutput, static_cast<std::size_t>(found - ports.begin())));
}

std::vector<PortRef> NodeItem::ports() const {
  std::vector<PortRef> refs;
  for (const PortLook& port : m_look.inputs) refs.push_back({m_look.id, port.name, false});
  for (const PortLook& port : m_look.outputs) refs.push_back({m_look.id, port.name, true});
  return refs;
}

std::optional<PortRef> NodeItem::portNear(QPointF scenePosition) const {
  std::optional<PortRef> nearest;
  double best = kPortSnapPx;
  for (const PortRef& port : ports()) {
    const double distance = QLineF(*portPosition(port), scenePosition).length();
    if (distance < best) {
      best = distance;
      nearest = port;
    }
  }
  return nearest;
}

QString NodeItem::tipAt(QPointF scenePosition) const {
  const auto port = portNear(scenePosition);
  if (!port) return m_look.tip;
  const auto& ports = port->isOutput ? m_look.outputs : m_look.inputs;
  return std::ranges::find(ports, port->port, &PortLook::name)->tip;
}

QRectF NodeItem::badgeArea() const {
  return {box().right() - kBadgePx * 0.7, box().top() - kBadgePx * 0.5, kBadgePx, kBadgePx};
}

/// At the end of the title.
QRectF NodeItem::arrowArea() const {
  return {box().right() - kArrowPx - 8, box().top() + (kNodeHeightPx - kArrowPx) / 2, kArrowPx, kArrowPx};
}

bool NodeItem::isOnArrow(QPointF scenePosition) const {
  return m_look.isBlock && arrowArea().contains(mapFromScene(scenePosition));
}

bool NodeItem::isOnBadge(QPointF scenePosition) const {
  return m_look.worst && badgeArea().contains(mapFromScene(scenePosition));
}

void NodeItem::setMark(const PortRef& port, PortMark mark) {
  std::erase_if(m_marks, [&](const auto& entry) { return entry.first == port; });
  m_marks.emplace_back(port, mark);
  update();
}

void NodeItem::clearMarks() {
  m_marks.clear();
  update();
}

PortMark NodeItem::markOf(const PortRef& port) const {
  for (const auto& [ref, mark] : m_marks) {
    if (ref == port) return mark;
  }
  return PortMark::Plain;
}

QVariant NodeItem::itemChange(GraphicsItemChange change, const QVariant& value) {
  if (change == ItemPositionChange) {
    const QPointF position = value.toPointF();
    return QPointF(std::round(position.x()), std::round(position.y()));
  }
  if (change == ItemPositionHasChanged) {
    if (auto* graphScene = qobject_cast<GraphScene*>(scene())) graphScene->nodeMoved();
  }
  return QGraphicsItem::itemChange(change, value);
}

void NodeItem::paint(QPainter* painter, const QStyleOptionGraphicsItem* option, QWidget*) {
  const double zoom = option->levelOfDetailFromTransform(painter->worldTransform());
  if (zoom < kOverviewZoom && m_marks.empty()) return paintOverview(*painter);
  const bool isFar = zoom < kFarZoom;
  painter->setRenderHint(QPainter::Antialiasing);
  paintBox(*painter);
  if (m_look.inside) paintInsideGround(*painter);
  if (m_look.hasHeat()) paintHeat(*painter, isFar);
  isFar ? paintFarTitle(*painter) : paintTexts(*painter);
  if (m_look.isBypassed) paintBypass(*painter);
  paintPorts(*painter);
  if (m_look.worst) paintBadge(*painter);
  if (m_look.rmsError) paintError(*painter, isFar);
  if (m_look.status) paintStatus(*painter);
  if (m_look.isBlock) paintArrow(*painter);
}

/// To the right where the block is closed, down where it is open.
void NodeItem::paintArrow(QPainter& painter) const {
  const QRectF area = arrowArea().adjusted(4, 4, -4, -4);
  const QPointF tip =
      m_look.inside ? QPointF(area.center().x(), area.bottom()) : QPointF(area.right(), area.center().y());
  const QPointF other = m_look.inside ? area.topRight() : area.bottomLeft();
  painter.setPen(Qt::NoPen);
  painter.setBrush(m_theme.colors().dimText);
  painter.drawPolygon(QPolygonF({area.topLeft(), tip, other}));
}

/// The ground of the canvas below the title, within the box of the instance.
void NodeItem::paintInsideGround(QPainter& painter) const {
  painter.setPen(m_theme.colors().grid);
  painter.setBrush(m_theme.colors().canvas);
  painter.drawRoundedRect(box().adjusted(kStripePx + 3, kNodeHeightPx - 6, -8, -8), kNodeCornerPx, kNodeCornerPx);
}

/// Category, heat, selection and problems can be told apart from very far away.
void NodeItem::paintOverview(QPainter& painter) const {
  const ThemeColors& colors = m_theme.colors();
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.fillRect(box(), isSelected() ? colors.accent : colors.node);
  if (m_look.kind == NodeKind::Op) {
    QRectF stripe = box();
    stripe.setWidth(kOverviewStripePx);
    painter.fillRect(stripe, m_theme.categoryColor(m_look.category));
  }
  if (m_look.hasHeat()) paintHeat(painter, true);
  painter.setPen(QPen(m_look.isUnknown ? colors.warning : colors.nodeBorder, 0));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(box());
  if (m_look.worst) paintBadge(painter);
  if (m_look.rmsError) paintError(painter, true);
  if (m_look.status) paintStatus(painter);
}

/// On the lower edge, at the other end than the error.
void NodeItem::paintStatus(QPainter& painter) const {
  paintStatusBadge(painter, box().bottomLeft() + QPointF(kStatusInsetPx, 0), *m_look.status, m_theme);
}

/// Draws a wire through the bypassed node, from its main input to its main output.
void NodeItem::paintBypass(QPainter& painter) const {
  if (m_look.inputs.empty() || m_look.outputs.empty()) return;
  QPen pen(m_theme.colors().dimText, 2.0);
  pen.setCapStyle(Qt::RoundCap);
  painter.setPen(pen);
  painter.drawLine(portPosition(false, 0), portPosition(true, 0));
}

void NodeItem::paintBox(QPainter& painter) const {
  const ThemeColors& colors = m_theme.colors();
  const bool isEnd = m_look.kind != NodeKind::Op;
  const double radius = isEnd ? box().height() / 2 : kNodeCornerPx;
  const QPainterPath shape = roundedBox(box(), radius);
  if (isSelected()) {
    QColor halo = colors.accent;
    halo.setAlpha(70);
    painter.fillPath(roundedBox(box().adjusted(-4, -4, 4, 4), radius + 4), halo);
  }
  if (m_look.isBypassed) painter.setOpacity(kGhostOpacity);
  painter.fillPath(shape, colors.node);
  if (m_look.isHatched())
    painter.fillPath(shape, QBrush(m_look.isUnknown ? colors.warning : colors.nodeBorder, Qt::BDiagPattern));
  if (!isEnd) {
    painter.fillPath(headOf(box().width()), headColor(m_theme, m_look.category));
    painter.fillPath(stripeOf(box().height()), m_theme.categoryColor(m_look.category));
  }
  QPen pen(isSelected() ? colors.accent : m_look.isUnknown ? colors.warning : colors.nodeBorder, isSelected() ? 2 : 1);
  if (m_look.isUnknown) pen.setStyle(Qt::DashLine);
  if (m_look.isBypassed) pen.setStyle(Qt::DotLine);
  painter.setOpacity(1.0);
  painter.strokePath(shape, pen);
}

QRectF NodeItem::textArea() const {
  const double right = m_look.isBlock ? kArrowPx + 12 : 8;
  return box().adjusted(m_look.kind == NodeKind::Op ? kStripePx + 8 : 8, 0, -right, 0);
}

/// Struck through where the op is bypassed.
QFont NodeItem::titleFont(double factor) const {
  QFont font = scaledFont(factor, QFont::DemiBold);
  font.setStrikeOut(m_look.isBypassed);
  return font;
}

const QColor& NodeItem::titleColor() const {
  return m_look.isBypassed ? m_theme.colors().dimText : m_theme.colors().text;
}

/// Below the title: forward on the left, backward on the right, in the colors of reports.
void NodeItem::paintHeat(QPainter& painter, bool isFar) const {
  const double middle = box().center().x();
  const QRectF row(box().left() + kStripePx + 1, kHeatTopPx, box().width() - kStripePx - 2,
                   kNodeHeightPx - kHeatTopPx - 2);
  const auto paintHalf = [&](const std::optional<HeatHalf>& half, double left, double right) {
    const QRectF area(left, row.top(), right - left, row.height());
    painter.setPen(Qt::NoPen);
    painter.setBrush(half ? half->color() : m_theme.colors().alternate);
    painter.drawRect(area);
    if (!half || isFar) return;
    painter.setFont(scaledFont(0.92));
    painter.setPen(textOn(half->color()));
    painter.drawText(area, Qt::AlignCenter, half->text);
  };
  paintHalf(m_look.forwardHeat, row.left(), middle - 0.5);
  paintHalf(m_look.backwardHeat, middle + 0.5, row.right());
}

/// From far away there is only the title, large; over the colors and in a capsule on one line.
void NodeItem::paintFarTitle(QPainter& painter) const {
  QRectF area = textArea();
  if (m_look.inside) area.setHeight(kNodeHeightPx);
  if (m_look.hasHeat()) area.setHeight(kHeatTopPx);
  if (m_look.isHatched()) painter.fillRect(area.adjusted(-3, 5, 3, -5), m_theme.colors().node);
  painter.setFont(titleFont(kFarFontFactor));
  painter.setPen(titleColor());
  const bool isOneLine = m_look.hasHeat() || m_look.kind != NodeKind::Op;
  drawFarTitle(painter, area, isOneLine ? m_look.title : breakableTitle(m_look.title));
}

void NodeItem::paintTexts(QPainter& painter) const {
  const bool isEnd = m_look.kind != NodeKind::Op;
  const QRectF area = textArea();
  const double height = isEnd ? kEndHeightPx : kNodeHeightPx;
  const auto drawLine = [&](QFont font, const QColor& color, const QString& text, double top, double bottom) {
    font = fittedFont(font, text, area.width(), 0.8);
    painter.setFont(font);
    painter.setPen(color);
    const QString fitted = QFontMetricsF(font).elidedText(text, Qt::ElideRight, area.width());
    const auto alignment = (isEnd ? Qt::AlignHCenter : Qt::AlignLeft) | Qt::AlignVCenter;
    painter.drawText(QRectF(area.left(), area.top() + top, area.width(), bottom - top), static_cast<int>(alignment),
                     fitted);
  };
  if (m_look.isHatched())
    painter.fillRect(area.adjusted(-3, 5, 3, 5 + height - 10 - box().height()), m_theme.colors().node);
  drawLine(titleFont(1.14), titleColor(), m_look.title, height * 0.08, height * 0.56);
  if (!m_look.hasHeat())
    drawLine(scaledFont(1.0), m_theme.colors().dimText, m_look.subtitle, height * 0.5, height * 0.92);
}

void NodeItem::paintPorts(QPainter& painter) const {
  for (std::size_t i = 0; i < m_look.inputs.size(); ++i) paintPort(painter, m_look.inputs[i], false, i);
  for (std::size_t i = 0; i < m_look.outputs.size(); ++i) paintPort(painter, m_look.outputs[i], true, i);
}

void NodeItem::paintPort(QPainter& painter, const PortLook& port, bool isOutput, std::size_t index) const {
  const ThemeColors& colors = m_theme.colors();
  const QPointF centre = portPosition(isOutput, index);
  const PortMark mark = markOf({m_look.id, port.name, isOutput});
  const double radius = mark == PortMark::Target  ? kPortRadiusPx + 3
                        : mark == PortMark::Legal ? kPortRadiusPx + 1.5
                                                  : kPortRadiusPx;
  painter.setOpacity(mark == PortMark::Illegal ? 0.3 : 1.0);
  const QColor plain = port.dtype ? m_theme.dtypeColor(dtypeName(*port.dtype)) : colors.dimText;
  painter.setPen(QPen(mark == PortMark::Plain ? plain : colors.accent, 1.8));
  painter.setBrush(mark == PortMark::Legal || mark == PortMark::Target ? colors.accent : colors.node);
  painter.drawPath(portShape(port.dtype, centre, radius));
  if (port.isNamed && painter.worldTransform().m11() >= kFarZoom) {
    painter.setFont(scaledFont(0.92));
    painter.setPen(colors.dimText);
    const QRectF area(10, centre.y() - 9, box().width() - 20, 18);
    painter.drawText(area, static_cast<int>((isOutput ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter),
                     toQt(port.name));
  }
  painter.setOpacity(1.0);
}

/// A pill across the lower edge: its color is the heat, its text the error. From far away it is larger, as the title.
void NodeItem::paintError(QPainter& painter, bool isFar) const {
  const double factor = isFar ? kFarFontFactor : 1.0;
  const double width = kErrorWidthPx * factor;
  const double height = kErrorHeightPx * factor;
  const QColor ground = heatColor(heatShare(*m_look.rmsError));
  const QRectF area(box().right() - width - 10, box().bottom() - height / 2, width, height);
  painter.setPen(QPen(m_theme.colors().canvas, 1.5));
  painter.setBrush(ground);
  painter.drawRoundedRect(area, height / 2, height / 2);
  painter.setFont(scaledFont(0.85 * factor));
  painter.setPen(textOn(ground));
  painter.drawText(area, Qt::AlignCenter, formatError(*m_look.rmsError));
}

void NodeItem::paintBadge(QPainter& painter) const {
  const ThemeColors& colors = m_theme.colors();
  const bool isError = *m_look.worst == Severity::Error;
  const QColor color = isError ? colors.error : *m_look.worst == Severity::Warning ? colors.warning : colors.note;
  const QRectF area = badgeArea();
  painter.setPen(Qt::NoPen);
  painter.setBrush(colors.canvas);
  painter.drawEllipse(area.adjusted(-1.5, -1.5, 1.5, 1.5));
  m_theme
      .icon(isError                              ? QStringLiteral("error")
            : *m_look.worst == Severity::Warning ? QStringLiteral("warning")
                                                 : QStringLiteral("note"),
            color)
      .paint(&painter, area.toAlignedRect());
}

}  // namespace fuseline::ui
