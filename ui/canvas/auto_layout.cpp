// Automatic layout with Graphviz's dot.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/auto_layout.h"

#include "core/edit/links.h"
#include "ui/canvas/layout_rows.h"
#include "ui/canvas/metrics.h"
#include "ui/layout/layered_layout.h"
#include "ui/session/exports.h"

#include <graphviz/cgraph.h>
#include <graphviz/gvc.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>

namespace fuseline::ui {

namespace {

constexpr double kLayoutUnitsPerInch = 72.0;

struct CloseGraph {
  void operator()(Agraph_t* graph) const { agclose(graph); }
};
struct FreeContext {
  void operator()(GVC_t* context) const { gvFreeContext(context); }
};
using GraphHandle = std::unique_ptr<Agraph_t, CloseGraph>;
using ContextHandle = std::unique_ptr<GVC_t, FreeContext>;

// cgraph's functions take char* for text they do not change.
char* mutableText(const char* text) { return const_cast<char*>(text); }
char* mutableText(const std::string& text) { return mutableText(text.c_str()); }

void setText(void* object, const char* name, const std::string& value) {
  agsafeset(object, mutableText(name), mutableText(value), mutableText(""));
}

std::string inches(double sizePx) { return std::to_string(sizePx / kLayoutUnitsPerInch); }

std::map<std::string, Agnode_t*> addNodes(Agraph_t* graph, const std::vector<NodeLook>& looks) {
  std::map<std::string, Agnode_t*> nodes;
  for (const NodeLook& look : looks) {
    Agnode_t* node = agnode(graph, mutableText(look.id), 1);
    setText(node, "shape", "box");
    setText(node, "fixedsize", "true");
    setText(node, "width", inches(look.size().width()));
    setText(node, "height", inches(look.size().height()));
    nodes[look.id] = node;
  }
  return nodes;
}

bool isMain(const Endpoint& to) { return to.port.empty() || to.port == "x"; }

void addEdges(Agraph_t* graph, const PipelineDocument& document, const std::map<std::string, Agnode_t*>& nodes) {
  for (const Link& link : linksOf(document)) {
    const auto from = nodes.find(link.from.node);
    const auto to = nodes.find(link.to.node);
    if (from == nodes.end() || to == nodes.end()) continue;
    Agedge_t* edge = agedge(graph, from->second, to->second, nullptr, 1);
    // A hundred times the pull of an extra wire: the main path becomes one straight line.
    setText(edge, "weight", isMain(link.to) ? "100" : "1");
  }
}

/// As dot's clusters: it keeps other nodes out of them.
void addGroups(Agraph_t* graph, const std::vector<NodeGroup>& groups, const std::map<std::string, Agnode_t*>& nodes) {
  std::map<std::string, Agraph_t*> innermost;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    std::vector<std::string> ids;
    std::ranges::copy_if(groups[i], std::back_inserter(ids), [&](const std::string& id) { return nodes.contains(id); });
    if (ids.empty()) continue;
    Agraph_t* const outer = innermost.contains(ids.front()) ? innermost[ids.front()] : graph;
    Agraph_t* const cluster = agsubg(outer, mutableText("cluster" + std::to_string(i)), 1);
    setText(cluster, "margin", std::to_string(kFrameMarginPx + kFrameHeaderPx / 2));
    for (const std::string& id : ids) {
      agsubnode(cluster, nodes.at(id), 1);
      innermost[id] = cluster;
    }
  }
}

int snapped(double valuePx) { return static_cast<int>(std::lround(valuePx / kGridPx)) * kGridPx; }

/// Network simplex takes a time that grows with the square of the graph: two thousand ops take seconds.
constexpr std::size_t kMostNodesForDot = 600;

/// Columns as wide as their widest node, lanes a row apart.
NodePositions layOutInLanes(const PipelineDocument& document, const std::vector<NodeLook>& looks) {
  std::map<std::string, std::size_t> indexOf;
  for (const NodeLook& look : looks) indexOf.emplace(look.id, indexOf.size());
  std::vector<LayeredEdge> edges;
  for (const Link& link : linksOf(document)) {
    const auto from = indexOf.find(link.from.node);
    const auto to = indexOf.find(link.to.node);
    if (from != indexOf.end() && to != indexOf.end()) edges.push_back({from->second, to->second, isMain(link.to)});
  }
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
  if (looks.size() > kMostNodesForDot && groups.empty()) {
    NodePositions inLanes = layOutInLanes(document, looks);
    breakIntoRows(inLanes, document, looks);
    return inLanes;
  }
  NodePositions positions;
  const std::lock_guard lock(graphvizMutex());
  const ContextHandle context(gvContext());
  const GraphHandle graph(agopen(mutableText("pipeline"), Agdirected, nullptr));
  setText(graph.get(), "rankdir", "LR");
  setText(graph.get(), "ranksep", inches(kWireGapPx));
  setText(graph.get(), "nodesep", inches(kRowPitchPx - kNodeHeightPx));
  const auto nodes = addNodes(graph.get(), looks);
  addEdges(graph.get(), document, nodes);
  addGroups(graph.get(), groups, nodes);
  if (gvLayout(context.get(), graph.get(), "dot") != 0) return positions;
  for (const NodeLook& look : looks) {
    const pointf centre = ND_coord(nodes.at(look.id));
    // Graphviz's y grows upwards.
    const double mainPortY = kGridPx * std::round(-centre.y / kGridPx);
    positions[look.id] = {snapped(centre.x - look.size().width() / 2), static_cast<int>(mainPortY) - kNodeHeightPx / 2};
  }
  gvFreeLayout(context.get(), graph.get());
  breakIntoRows(positions, document, looks);
  return positions;
}

}  // namespace fuseline::ui
