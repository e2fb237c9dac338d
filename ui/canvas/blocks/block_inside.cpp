// Lays the inside of a block out below the title of its instance.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/blocks/block_inside.h"

#include "ui/canvas/metrics.h"

#include <algorithm>
#include <map>
#include <set>

namespace fuseline::ui {

namespace {

constexpr int kInsideMarginPx = 24;

/// On the row of the op at its other end, or on the next free one.
Position besideOp(const NodePositions& places, const std::string& op, int x, std::set<int>& taken) {
  const auto found = places.find(op);
  int y = (found == places.end() ? 0 : found->second.y) + (kNodeHeightPx - kEndHeightPx) / 2;
  while (!taken.insert(y).second) y += kRowPitchPx;
  return {x, y};
}

int onGridAbove(double length) { return static_cast<int>(std::ceil(length / kGridPx)) * kGridPx; }

}  // namespace

void placePorts(NodePositions& places, const PipelineDocument& block) {
  const NodePositions given(block.positions().begin(), block.positions().end());
  NodePositions ops;
  for (const DocumentOp& op : block.ops()) ops[op.id] = places[op.id];
  if (given.empty() || ops.empty()) return;
  const auto [first, last] = std::ranges::minmax_element(ops, {}, [](const auto& entry) { return entry.second.x; });
  std::set<int> takenBefore;
  std::set<int> takenBehind;
  const auto isOf = [](const std::string& id) { return [&id](const Wire& wire) { return wire.from.node == id; }; };
  for (const DocumentInput& input : block.inputs()) {
    if (given.contains(input.id)) continue;
    const auto wire = std::ranges::find_if(block.wires(), isOf(input.id));
    const std::string reader = wire == block.wires().end() ? std::string() : wire->to.node;
    places[input.id] = besideOp(ops, reader, first->second.x - kEndWidthPx - kWireGapPx, takenBefore);
  }
  for (const DocumentOutput& output : block.outputs())
    if (!given.contains(output.id))
      places[output.id] = besideOp(ops, output.from.node, last->second.x + kNodeWidthPx + kWireGapPx, takenBehind);
}

NodePositions nodePlaces(const PipelineDocument& document, const std::vector<NodeLook>& looks, bool isBlock) {
  NodePositions places(document.positions().begin(), document.positions().end());
  if (std::ranges::all_of(looks, [&](const NodeLook& look) { return places.contains(look.id); })) return places;
  const NodePositions automatic = autoLayout(document, looks);
  places.insert(automatic.begin(), automatic.end());
  if (isBlock) placePorts(places, document);
  return places;
}

BlockInside blockInside(const PipelineDocument& block, const Analysis& analysis) {
  BlockInside inside{.looks = nodeLooks(block, analysis, {}), .places = {}, .links = linksOf(block), .size = {}};
  inside.places = nodePlaces(block, inside.looks, true);
  QRectF around;
  for (const NodeLook& look : inside.looks) {
    const Position& place = inside.places[look.id];
    around = around.united(QRectF(QPointF(place.x, place.y), look.size()));
  }
  const int left = static_cast<int>(around.left()) - kInsideMarginPx;
  const int top = static_cast<int>(around.top()) - kNodeHeightPx - kInsideMarginPx / 2;
  for (auto& [id, place] : inside.places) place = {place.x - left, place.y - top};
  inside.size = QSizeF(onGridAbove(around.right() - left + kInsideMarginPx),
                       onGridAbove(around.bottom() - top + kInsideMarginPx));
  return inside;
}

}  // namespace fuseline::ui
