// A wire aims at ports; where it may be joined, it becomes an edit.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/wire_gesture.h"

#include "core/edit/filling.h"
#include "ui/canvas/canvas_geometry.h"
#include "ui/theme/format.h"

#include <QToolTip>

#include <algorithm>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr double kClickTolerancePx = 4.0;
constexpr int kLooseEndPx = 20;

}  // namespace

WireGesture::WireGesture(const CanvasParts& parts) : m_parts(parts) {}

/// A wire of a file may begin at an op that is not there, or at a port that it has not.
bool WireGesture::isOnCanvas(const PortRef& port) const {
  const NodeItem* const item = m_parts.items.node(port.node);
  return item && item->portPosition(port);
}

void WireGesture::begin(const PortRef& port, QPointF position) {
  m_draft = std::make_unique<Draft>(Draft{.origin = port, .pressedAt = position});
  if (!port.isOutput) {
    const auto link = linkInto(m_parts.scope.document(), port.endpoint());
    const PortRef origin = link ? PortRef{link->from.node, link->from.port, true} : port;
    if (link && isOnCanvas(origin)) {
      m_draft->pickedUp = link;
      m_draft->origin = origin;
    }
  }
  m_draft->line =
      m_parts.scene.addPath(QPainterPath(), QPen(m_parts.theme.colors().accent, 2.4, Qt::SolidLine, Qt::RoundCap));
  m_draft->line->setZValue(20);
  resume();
}

void WireGesture::beginAll(const PortRef& output, QPointF position) {
  begin(output, position);
  if (!m_draft) return;
  for (const Link& link : linksOf(m_parts.scope.document()))
    if (link.from == output.endpoint() && isOnCanvas({link.to.node, link.to.port, false}))
      m_draft->carried.push_back(link);
  resume();
}

void WireGesture::resume() {
  if (!m_draft) return;
  const auto isGone = [this](const Link& link) { return !isOnCanvas({link.to.node, link.to.port, false}); };
  if (!isOnCanvas(m_draft->origin) || std::ranges::any_of(m_draft->carried, isGone)) return cancel();
  for (LinkItem* item : m_parts.items.links()) {
    if (m_draft->pickedUp == item->link() || std::ranges::count(m_draft->carried, item->link()) > 0) item->hide();
  }
  markPorts();
  const std::optional<PortRef> target = std::exchange(m_draft->target, std::nullopt);
  const NodeItem* const aimed = target ? m_parts.items.node(target->node) : nullptr;
  if (aimed && aimed->portPosition(*target)) aimAt(target, m_draft->end);
}

Link WireGesture::linkTo(const PortRef& target) const {
  const PortRef& origin = m_draft->origin;
  const PortRef& from = origin.isOutput ? origin : target;
  const PortRef& to = origin.isOutput ? target : origin;
  return {.from = from.endpoint(), .to = to.endpoint()};
}

Verdict WireGesture::verdictOn(const PortRef& target) const {
  if (!m_draft->carried.empty()) {
    if (!target.isOutput) return Verdict::no(tr("These wires can only be moved to another output.").toStdString());
    const auto moved = moveLinks(m_parts.scope.document(), m_draft->origin.endpoint(), target.endpoint());
    return moved ? Verdict::yes() : Verdict::no(moved.error().message);
  }
  if (target.isOutput == m_draft->origin.isOutput) {
    return Verdict::no(target.isOutput ? tr("An output can only be connected to an input.").toStdString()
                                       : tr("An input can only be connected to an output.").toStdString());
  }
  const Link link = linkTo(target);
  return linkVerdict(m_parts.scope.document(), link.from, link.to);
}

/// Quick for large pipelines: a wire is illegal within one side and where it would close a cycle.
void WireGesture::markPorts() {
  const PortRef& origin = m_draft->origin;
  const bool isForInput = origin.isOutput && m_draft->carried.empty();
  auto forbidden = reachable(m_parts.scope.document(), origin.node,
                             isForInput ? FlowDirection::Upstream : FlowDirection::Downstream);
  if (!m_draft->carried.empty()) forbidden.erase(origin.node);  // its other outputs
  for (const auto& [id, item] : m_parts.items.nodes()) {
    for (const PortRef& port : item->ports()) {
      if (port == origin) continue;
      const bool isIllegal = port.isOutput == isForInput || forbidden.contains(id);
      item->setMark(port, isIllegal ? PortMark::Illegal : PortMark::Legal);
    }
  }
}

void WireGesture::moveTo(QPointF position, QPoint screenPosition) {
  const std::optional<PortRef> before = m_draft->target;
  const QString sentence = aimAt(m_parts.items.portNear(position), position);
  if (m_draft->target == before) return;
  Q_EMIT hint(sentence);
  sentence.isEmpty() ? QToolTip::hideText() : QToolTip::showText(screenPosition + QPoint(14, 14), sentence);
}

/// Draws the wire to the target, or to the place where there is none; returns what there is to say of the target.
QString WireGesture::aimAt(const std::optional<PortRef>& target, QPointF position) {
  const bool isTarget = target && *target != m_draft->origin;
  const QPointF end = isTarget ? *m_parts.items.node(target->node)->portPosition(*target) : position;
  m_draft->end = end;
  m_draft->line->setPath(pathTo(end));
  if (target == m_draft->target) return {};
  m_draft->target = target;
  markPorts();
  return isTarget ? sentenceOf(*target) : QString();
}

QPainterPath WireGesture::pathTo(QPointF end) const {
  const auto at = [this](const PortRef& port) { return *m_parts.items.node(port.node)->portPosition(port); };
  const PortRef& origin = m_draft->origin;
  if (m_draft->carried.empty()) return origin.isOutput ? wirePath(at(origin), end) : wirePath(end, at(origin));
  QPainterPath path;
  for (const Link& link : m_draft->carried) path.addPath(wirePath(end, at({link.to.node, link.to.port, false})));
  return path;
}

/// Marks the target, too.
QString WireGesture::sentenceOf(const PortRef& target) {
  const Verdict verdict = verdictOn(target);
  const Link link = linkTo(target);
  if (verdict) m_parts.items.node(target.node)->setMark(target, PortMark::Target);
  QPen pen = m_draft->line->pen();
  pen.setStyle(verdict ? Qt::SolidLine : Qt::DotLine);
  pen.setColor(verdict ? m_parts.theme.colors().accent : m_parts.theme.colors().error);
  m_draft->line->setPen(pen);
  if (!verdict) return toQt(verdict.reason());
  if (!m_draft->carried.empty()) return {};
  const QString warning = toQt(linkWarning(m_parts.scope.document(), link.from, link.to));
  return warning.isEmpty() ? warning : tr("Connects, with a warning: %1").arg(warning);
}

void WireGesture::finish() {
  const std::unique_ptr<Draft> keep = std::make_unique<Draft>(*m_draft);
  const std::optional<PortRef> target = keep->target;
  const bool isPort = target && *target != keep->origin;
  const Verdict verdict = isPort ? verdictOn(*target) : Verdict::yes();
  const Link link = isPort ? linkTo(*target) : Link{};
  cancel();
  if (!verdict) Q_EMIT hint(toQt(verdict.reason()));
  const PipelineDocument& document = m_parts.scope.document();
  if (!keep->carried.empty()) {
    if (isPort && verdict) m_parts.scope.apply(*moveLinks(document, keep->origin.endpoint(), target->endpoint()));
  } else if (isPort && verdict) {
    const bool isSame = keep->pickedUp && keep->pickedUp->to == link.to;
    if (isSame) return;
    Edit connected = connectEdit(document, link.from, link.to);
    if (!keep->pickedUp) {
      m_parts.scope.apply(connected);
    } else {
      EditGroup group{.label = "Reconnect to " + toString(link.to), .edits = {unlinkEdit(document, *keep->pickedUp)}};
      group.edits.push_back(std::move(connected));
      m_parts.scope.apply(group);
    }
  } else if (!isPort && keep->pickedUp) {
    m_parts.scope.apply(unlinkEdit(document, *keep->pickedUp));
  }
}

void WireGesture::drop(QPointF position, QPoint screenPosition) {
  moveTo(position, screenPosition);
  const LooseWire wire{m_draft->origin.endpoint(), m_draft->origin.isOutput};
  const bool isTaken = m_draft->pickedUp || !m_draft->carried.empty();
  const bool isLoose = !m_draft->target && !isTaken && m_parts.items.nodeAt(position).empty();
  finish();
  if (isLoose) Q_EMIT dropped(wire, position, screenPosition);
}

void WireGesture::cancel() {
  if (!m_draft) return;
  delete m_draft->line;
  m_draft.reset();
  for (const auto& [id, item] : m_parts.items.nodes()) item->clearMarks();
  for (LinkItem* item : m_parts.items.links()) item->show();
  QToolTip::hideText();
  Q_EMIT hint({});
}

void WireGesture::release(QPointF position, QPoint screenPosition) {
  const bool isClick = QLineF(m_draft->pressedAt, position).length() < kClickTolerancePx;
  if (!isClick || m_draft->isSticky) return drop(position, screenPosition);
  m_draft->isSticky = true;
  Q_EMIT hint(tr("Click a port to connect. Esc: cancel."));
}

// ----------------------------------------------------------------------------------------------------- wires by keys

bool WireGesture::isUnconnected(const PortRef& port) const {
  const PipelineDocument& document = m_parts.scope.document();
  if (!port.isOutput) return !linkInto(document, port.endpoint());
  return std::ranges::none_of(linksOf(document), [&](const Link& link) { return link.from == port.endpoint(); });
}

/// In the order in which keys begin wires at them: outputs, inputs, and of each those without a wire first.
std::vector<PortRef> WireGesture::originsOf(const NodeItem& item) const {
  std::vector<PortRef> ports = item.ports();
  std::ranges::stable_sort(ports,
                           [&](const PortRef& a, const PortRef& b) { return isUnconnected(a) && !isUnconnected(b); });
  std::ranges::stable_partition(ports, &PortRef::isOutput);
  return ports;
}

void WireGesture::start() {
  const NodeItem* item = m_parts.items.node(m_parts.scope.singleSelection().toStdString());
  if (!item) return Q_EMIT hint(tr("No op is selected. Select the source op of the wire, then press W."));
  const std::vector<PortRef> ports = originsOf(*item);
  if (ports.empty()) return;
  const std::size_t key = m_draft ? (m_draft->key + 1) % ports.size() : 0;
  cancel();
  begin(ports[key], *item->portPosition(ports[key]));
  m_draft->key = key;
  m_draft->isSticky = true;
  const QPointF from = *m_parts.items.node(m_draft->origin.node)->portPosition(m_draft->origin);
  const QPointF ahead = m_draft->origin.isOutput ? QPointF(1, 0) : QPointF(-1, 0);
  const auto costOfFree = [&](const PortRef& port, QPointF place) {
    constexpr double kBehindPx = 1e6;  // what lies ahead comes first, however far it is
    const QPointF way = place - from;
    return port.isOutput || isUnconnected(port)
               ? std::optional(costOfWay(way, ahead).value_or(kBehindPx + way.manhattanLength()))
               : std::nullopt;
  };
  aimByKey(m_draft->pickedUp ? std::nullopt : nearestPort(costOfFree));
}

void WireGesture::aim(QPointF direction) {
  const QPointF from = end();
  const auto target = nearestPort([&](const PortRef&, QPointF place) { return costOfWay(place - from, direction); });
  if (target) aimByKey(target);
}

QPointF WireGesture::end() const { return m_draft ? m_draft->end : QPointF(); }

/// Nearest port that the wire may connect to. cost: nullopt if the port cannot be connected.
std::optional<PortRef> WireGesture::nearestPort(
    const std::function<std::optional<double>(const PortRef&, QPointF)>& cost) const {
  std::optional<PortRef> nearest;
  double lowest = 0;
  for (const auto& [id, item] : m_parts.items.nodes())
    for (const PortRef& port : item->ports()) {
      const std::optional<double> each = cost(port, *item->portPosition(port));
      if (!each || (nearest && *each >= lowest) || port == m_draft->origin || !verdictOn(port)) continue;
      nearest = port;
      lowest = *each;
    }
  return nearest;
}

/// Loose end of a wire without a target: near the input it was disconnected from, or at its source.
QPointF WireGesture::looseEnd() const {
  if (!m_draft->pickedUp) return *m_parts.items.node(m_draft->origin.node)->portPosition(m_draft->origin);
  const Endpoint& input = m_draft->pickedUp->to;
  return *m_parts.items.node(input.node)->portPosition({input.node, input.port, false}) - QPointF(kLooseEndPx, 0);
}

void WireGesture::aimByKey(const std::optional<PortRef>& target) {
  const auto name = [](const PortRef& port) { return toQt(toString(port.endpoint())); };
  const QString sentence = aimAt(target, target ? QPointF() : looseEnd());
  if (!sentence.isEmpty()) return Q_EMIT hint(sentence);
  if (target)
    Q_EMIT hint(tr("%1 → %2. Enter: connect; arrow keys: another target; W: another source port; Esc: cancel.")
                    .arg(name(m_draft->origin), name(*target)));
  else if (m_draft->pickedUp)
    Q_EMIT hint(tr("Disconnected from %1. Enter: leave disconnected; arrow keys: another target; Esc: restore.")
                    .arg(toQt(toString(m_draft->pickedUp->to))));
  else
    Q_EMIT hint(tr("%1 → ... Arrow keys: choose a target port.").arg(name(m_draft->origin)));
}

}  // namespace fuseline::ui
