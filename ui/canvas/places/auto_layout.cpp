// Automatic layout by the layout engine of drawings.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/places/auto_layout.h"

#include "core/edit/links.h"
#include "core/export/graphviz/layouts.h"
#include "ui/canvas/layout_rows.h"
#include "ui/canvas/metrics.h"
#include "ui/layout/layered_layout.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace fuseline::ui {

namespace {

using Boxes = std::map<std::string, int>;

Boxes boxesOf(const std::vector<NodeLook>& looks) {
  Boxes boxes;
  for (std::size_t i = 0; i < looks.size(); ++i) boxes.emplace(looks[i].id, static_cast<int>(i));
  return boxes;
}

bool isMain(const Endpoint& to) { return to.port.empty() || to.port == "x"; }

/// Calls take(from, to, isMain) for each wire between two of the boxes.
template <class Take>
void forEachWire(const PipelineDocument& document, const Boxes& boxes, const Take& take) {
  for (const Link& link : linksOf(document)) {
    const auto from = boxes.find(link.from.node);
    const auto to = boxes.find(link.to.node);
    if (from != boxes.end() && to != boxes.end()) take(from->second, to->second, isMain(link.to));
  }
}

/// Other nodes are kept out of a group. An inner group is in the last one before it that has its first box.
void addGroups(LayoutProblem& problem, const std::vector<NodeGroup>& groups, const Boxes& boxes) {
  std::map<int, int> innermost;
  for (const NodeGroup& group : groups) {
    LayoutProblem::Frame frame;
    for (const std::string& id : group)
      if (const auto box = boxes.find(id); box != boxes.end()) frame.boxes.push_back(box->second);
    if (frame.boxes.empty()) continue;
    if (const auto outer = innermost.find(frame.boxes.front()); outer != innermost.end()) frame.outer = outer->second;
    if (frame.outer >= 0)
      std::erase_if(problem.frames[static_cast<std::size_t>(frame.outer)].boxes,
                    [&](int box) { return std::ranges::count(frame.boxes, box) > 0; });
    for (const int box : frame.boxes) innermost[box] = static_cast<int>(problem.frames.size());
    problem.frames.push_back(std::move(frame));
  }
}

LayoutProblem problemOf(const PipelineDocument& document, const std::vector<NodeLook>& looks,
                        const std::vector<NodeGroup>& groups) {
  LayoutProblem problem;
  for (const NodeLook& look : looks) problem.boxes.push_back({look.size().width(), look.size().height()});
  const Boxes boxes = boxesOf(looks);
  forEachWire(document, boxes, [&](int from, int to, bool isMain) {
    problem.wires.push_back({.from = from, .to = to, .label = {}, .isMain = isMain});
  });
  addGroups(problem, groups, boxes);
  return problem;
}

constexpr LayoutGaps kGaps = {
    .layer = kWireGapPx, .box = kRowPitchPx - kNodeHeightPx, .frame = kFrameMarginPx + kFrameHeaderPx / 2};

int snapped(double valuePx) { return static_cast<int>(std::lround(valuePx / kGridPx)) * kGridPx; }

/// Network simplex takes a time that grows with the square of the graph: two thousand ops take seconds.
constexpr std::size_t kMostNodesForDot = 600;

/// Columns as wide as their widest node, lanes a row apart.
NodePositions layOutInLanes(const PipelineDocument& document, const std::vector<NodeLook>& looks) {
  std::vector<LayeredEdge> edges;
  forEachWire(document, boxesOf(looks), [&](int from, int to, bool isMain) {
    edges.push_back({static_cast<std::size_t>(from), static_cast<std::size_t>(to), isMain});
  });
  const std::vector<LayeredPlace> places = layeredPlaces(looks.size(), edges);
  std::map<std::size_t, double> widths;
  double pitch = kRowPitchPx;
  for (std::size_t i = 0; i < looks.size(); ++i) {
    widths[places[i].column] = std::max(widths[places[i].column], looks[i].size().width());
    pitch = std::max(pitch, looks[i].size().height() + kRowPitchPx - kNodeHeightPx);
  }
  std::map<std::size_t, double> lefts;
  double left = 0.0;
  for (const auto& [column, width] : widths) {
    lefts[column] = left;
    left += width + kWireGapPx;
  }
  NodePositions positions;
  for (std::size_t i = 0; i < looks.size(); ++i) {
    const std::size_t column = places[i].column;
    const double inset = (widths[column] - looks[i].size().width()) / 2;
    positions[looks[i].id] = {snapped(lefts[column] + inset), snapped(static_cast<double>(places[i].lane) * pitch)};
  }
  return positions;
}

}  // namespace

NodePositions autoLayout(const PipelineDocument& document, const std::vector<NodeLook>& looks,
                         const std::vector<NodeGroup>& groups) {
  const LayOutGraph layOut = rowLayout(kGaps);
  if (!layOut || (looks.size() > kMostNodesForDot && groups.empty())) {
    NodePositions inLanes = layOutInLanes(document, looks);
    breakIntoRows(inLanes, document, looks);
    return inLanes;
  }
  NodePositions positions;
  const Result<GraphLayout> layout = layOut(problemOf(document, looks, groups));
  if (!layout) return positions;
  for (std::size_t i = 0; i < looks.size(); ++i) {
    const DrawnPoint& center = layout->boxes[i];
    const double mainPortY = kGridPx * std::round((center.y - layout->size.height) / kGridPx);  // up from the bottom
    positions[looks[i].id] = {snapped(center.x - looks[i].size().width() / 2),
                              static_cast<int>(mainPortY) - kNodeHeightPx / 2};
  }
  breakIntoRows(positions, document, looks);
  return positions;
}

}  // namespace fuseline::ui
