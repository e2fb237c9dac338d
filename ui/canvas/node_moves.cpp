// Items move first; then their places become edits.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/node_moves.h"

#include "core/edit/reroutes.h"
#include "ui/canvas/canvas_geometry.h"
#include "ui/canvas/metrics.h"
#include "ui/theme/format.h"

#include <QScopedValueRollback>

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace fuseline::ui {

namespace {

/// A shorter move is a click with an unsteady hand.
constexpr double kLeastMovePx = 3.0;

/// The left and upper edge of these nodes; without ids, of all.
Position cornerOf(const std::map<std::string, Position>& positions, const std::vector<std::string>& ids = {}) {
  Position corner{std::numeric_limits<int>::max(), std::numeric_limits<int>::max()};
  for (const auto& [id, position] : positions) {
    if (!ids.empty() && std::ranges::count(ids, id) == 0) continue;
    corner = {std::min(corner.x, position.x), std::min(corner.y, position.y)};
  }
  return corner;
}

std::string moveLabel(const std::vector<Edit>& moves) {
  if (moves.size() == 1) return "Move " + std::get<MoveNode>(moves.front()).id;
  return "Move " + std::to_string(moves.size()) + " nodes";
}

}  // namespace

NodeMoves::NodeMoves(const CanvasParts& parts) : m_parts(parts) {}

void NodeMoves::noteMoved() {
  if (m_isPlacing) return;
  m_areNodesMoved = true;
  if (!m_isMovingTogether) follow();
}

/// Once for all that move together: hulls look at every node.
void NodeMoves::follow() {
  if (!std::exchange(m_areNodesMoved, false)) return;
  m_parts.items.followNodes();
  Q_EMIT dragged();
}

void NodeMoves::moveTogether(const std::function<void()>& move) {
  {
    const QScopedValueRollback guard(m_isMovingTogether, true);
    move();
  }
  follow();
}

void NodeMoves::placeNodes(const std::map<std::string, QPointF>& places) {
  if (places.empty()) return;
  {
    const QScopedValueRollback guard(m_isPlacing, true);
    for (const auto& [id, place] : places) m_parts.items.node(id)->setPos(place);
  }
  noteMoved();
}

/// One undo step; nodes that stay where they are are left out.
void NodeMoves::apply(const char* label, const std::vector<MoveNode>& moves, std::vector<Edit> others) {
  std::vector<Edit> edits = std::move(others);
  for (const MoveNode& move : moves)
    if (placeOf(move.id) != move.position) edits.push_back(move);
  if (!edits.empty()) m_parts.scope.apply(EditGroup{.label = label, .edits = std::move(edits)});
}

/// Sizes and places of an arrangement are those of closed blocks.
void NodeMoves::closeBlocks() {
  std::vector<std::string> open;
  for (const auto& [id, item] : m_parts.items.nodes())
    if (item->look().inside) open.push_back(id);
  for (const std::string& id : open) (void)m_parts.scope.toggleOpen(id);
}

bool NodeMoves::layOut() {
  closeBlocks();
  const std::vector<std::string> selected = m_parts.items.selectedNodes();
  const bool areSome = selected.size() > 1;
  std::vector<NodeLook> looks;
  for (const auto& [id, item] : m_parts.items.nodes())
    if (!areSome || item->isSelected()) looks.push_back(item->look());
  const PipelineDocument& document = m_parts.scope.document();
  const NodeBoxes before = m_parts.frames.nodeBoxes();
  const NodePositions laidOut = autoLayout(document, looks, framedGroups(document, before));
  const Position from = cornerOf(laidOut);
  const Position to = areSome ? cornerOf(m_parts.items.positions(), selected) : from;
  NodeBoxes after = before;
  std::vector<MoveNode> moves;
  for (const auto& [id, place] : laidOut) {
    const QPoint target(place.x - from.x + to.x, place.y - from.y + to.y);
    moves.push_back({.id = id, .position = Position{target.x(), target.y()}});
    after[id].translate(target - m_parts.items.node(id)->pos().toPoint());
  }
  std::vector<Edit> others = refitFrames(document, before, after);
  for (const Link& link : linksOf(document))
    if (laidOut.contains(link.from.node) && laidOut.contains(link.to.node))
      for (Edit& edit : removeReroutes(document.pipeline(), link)) others.push_back(std::move(edit));
  apply("Auto-arrange", moves, std::move(others));
  return !areSome;
}

void NodeMoves::arrangeSelected(Arrangement arrangement) {
  NodeBoxes boxes;
  for (const std::string& id : m_parts.items.selectedNodes()) {
    const Position place = placeOf(id);
    boxes[id] = QRect(QPoint(place.x, place.y), m_parts.items.node(id)->look().size().toSize());
  }
  if (boxes.size() < 2) return Q_EMIT hint(tr("Fewer than two nodes are selected. Select the nodes to arrange."));
  apply("Arrange", arrange(boxes, arrangement));
}

void NodeMoves::moveSelected(QPoint steps) {
  m_parts.frames.beginDrag();
  QList<QGraphicsItem*> moved = m_parts.scene.selectedItems();
  moved.removeIf([](const QGraphicsItem* item) { return !(item->flags() & QGraphicsItem::ItemIsMovable); });
  if (moved.isEmpty()) return Q_EMIT hint(tr("Nothing movable is selected. Select ops or unlocked frames to move."));
  moveTogether([&] {
    for (QGraphicsItem* item : std::as_const(moved)) item->moveBy(steps.x() * kGridPx, steps.y() * kGridPx);
  });
  std::vector<std::string> ids = m_parts.items.selectedNodes();
  std::ranges::copy(m_parts.frames.selected(), std::back_inserter(ids));
  std::ranges::copy(m_parts.items.reroutes().selected(), std::back_inserter(ids));
  commit(QStringLiteral("move ") + toQt(fmt::format("{}", fmt::join(ids, ","))));
}

void NodeMoves::commit(const QString& mergeKey, Grid grid) {
  const bool isSnapping = m_isSnapping == (grid == Grid::AsChosen);
  std::vector<Edit> moves;
  for (const auto& [id, item] : m_parts.items.nodes()) {
    const Position before = placeOf(id);
    const QPoint exact = item->pos().toPoint();
    const bool isSnapped = isSnapping && !m_parts.frames.carries(id);
    const Position place = isSnapped ? snappedPosition(item->pos()) : Position{exact.x(), exact.y()};
    const QPointF way = item->pos() - QPointF(before.x, before.y);
    if (way.manhattanLength() < kLeastMovePx)
      item->setPos(before.x, before.y);
    else if (before != place)
      moves.push_back(MoveNode{.id = id, .position = place});
  }
  std::vector<Edit> frames = m_parts.frames.changes();
  std::vector<Edit> points = m_parts.items.reroutes().moves();
  if (moves.empty() && frames.empty() && points.empty()) return;
  const std::string label = !frames.empty()  ? m_parts.frames.changeLabel()
                            : !moves.empty() ? moveLabel(moves)
                                             : "Move reroute points";
  moves.insert(moves.end(), points.begin(), points.end());
  moves.insert(moves.end(), frames.begin(), frames.end());
  if (!m_parts.scope.apply(EditGroup{.label = label, .edits = std::move(moves)}, mergeKey)) Q_EMIT refused();
}

}  // namespace fuseline::ui
