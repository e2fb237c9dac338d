// Builds a graph of fixed sizes, has dot lay it out, and reads the places.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/graphviz/graphviz_layout.h"

#include <graphviz/cgraph.h>
#include <graphviz/gvc.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr double kPointsPerInch = 72.0;  // a point of Graphviz is a pixel here

struct CloseGraph {
  void operator()(Agraph_t* graph) const { agclose(graph); }
};
struct FreeContext {
  void operator()(GVC_t* context) const { gvFreeContext(context); }
};
using GraphHandle = std::unique_ptr<Agraph_t, CloseGraph>;
using ContextHandle = std::unique_ptr<GVC_t, FreeContext>;

// cgraph's functions take char* for text they do not change.
char* mutableText(const std::string& text) { return const_cast<char*>(text.c_str()); }

void setText(void* object, const std::string& name, const std::string& value) {
  agsafeset(object, mutableText(name), mutableText(value), mutableText(""));
}

std::string inches(double sizePx) { return fmt::format("{:.4f}", sizePx / kPointsPerInch); }

/// Messages go to aglasterr() instead of standard error, for as long as this lives.
class QuietErrors {
 public:
  QuietErrors() : m_level(agseterr(AGMAX)) {}
  ~QuietErrors() { agseterr(m_level); }
  QuietErrors(const QuietErrors&) = delete;
  QuietErrors& operator=(const QuietErrors&) = delete;

 private:
  agerrlevel_t m_level;
};

Error problemOfGraphviz() {
  const std::unique_ptr<char, decltype(&std::free)> said(aglasterr(), &std::free);
  std::string message = said ? said.get() : "no reason given";
  if (message.find("not recognized") != std::string::npos)
    return Error{"Graphviz cannot lay out the graph: its plugins were not found; `dot -c` registers them"};
  while (!message.empty() && (message.back() == '\n' || message.back() == '.')) message.pop_back();
  std::ranges::replace(message, '\n', ' ');
  return Error{fmt::format("Graphviz cannot lay out the graph: {}", message)};
}

class DotLayout {
 public:
  /// direction: rankdir of dot.
  DotLayout(const LayoutProblem& problem, const char* direction, const LayoutGaps& gaps)
      : m_problem(problem),
        m_direction(direction),
        m_gaps(gaps),
        m_context(gvContext()),
        m_graph(agopen(mutableText("pipeline"), Agdirected, nullptr)) {}

  Result<GraphLayout> run() {
    setUp();
    addBoxes();
    addWires();
    addFrames();
    if (gvLayout(m_context.get(), m_graph.get(), "dot") != 0) return problemOfGraphviz();
    GraphLayout layout = places();
    gvFreeLayout(m_context.get(), m_graph.get());
    return layout;
  }

 private:
  static constexpr int kNone = -1;

  void setUp() {
    setText(m_graph.get(), "rankdir", m_direction);
    setText(m_graph.get(), "ranksep", inches(m_gaps.layer));
    setText(m_graph.get(), "nodesep", inches(m_gaps.box));
    for (const int kind : {AGRAPH, AGNODE, AGEDGE}) agattr(m_graph.get(), kind, mutableText("label"), mutableText(""));
  }

  void addBoxes() {
    for (std::size_t i = 0; i < m_problem.boxes.size(); ++i)
      m_nodes.push_back(addNode(fmt::format("box{}", i), m_problem.boxes[i]));
  }

  Agnode_t* addNode(const std::string& name, const DrawnSize& size) {
    Agnode_t* node = agnode(m_graph.get(), mutableText(name), 1);
    setText(node, "shape", "box");
    setText(node, "fixedsize", "true");
    setText(node, "width", inches(size.width));
    setText(node, "height", inches(size.height));
    return node;
  }

  Agnode_t* nodeOf(int box) const { return m_nodes[static_cast<std::size_t>(box)]; }

  /// A table of this size: a text's would follow from the fonts of the machine.
  void setTitle(Agraph_t* cluster, const DrawnSize& size) {
    if (size.width <= 0.0) return;
    const std::string table = fmt::format(
        "<TABLE BORDER=\"0\" CELLBORDER=\"0\" CELLSPACING=\"0\" CELLPADDING=\"0\" FIXEDSIZE=\"TRUE\" "
        "WIDTH=\"{:.0f}\" HEIGHT=\"{:.0f}\"><TR><TD></TD></TR></TABLE>",
        std::ceil(size.width), std::ceil(size.height));
    agset(cluster, mutableText("label"), agstrdup_html(m_graph.get(), mutableText(table)));
  }

  /// A label is a node between two edges: labels of edges push these aside, the more so within clusters.
  void addWires() {
    for (std::size_t i = 0; i < m_problem.wires.size(); ++i) {
      const LayoutProblem::Wire& wire = m_problem.wires[i];
      const bool hasLabel = wire.label.width > 0.0;
      m_labels.push_back(hasLabel ? addNode(fmt::format("label{}", i), wire.label) : nullptr);
      if (hasLabel) addEdge(nodeOf(wire.from), m_labels[i], wire.isMain, "none");
      m_edges.push_back(addEdge(hasLabel ? m_labels[i] : nodeOf(wire.from), nodeOf(wire.to), wire.isMain, "forward"));
    }
  }

  Agedge_t* addEdge(Agnode_t* from, Agnode_t* to, bool isMain, const char* direction) {
    Agedge_t* edge = agedge(m_graph.get(), from, to, nullptr, 1);
    setText(edge, "arrowsize", "0.7");
    setText(edge, "weight", isMain ? "100" : "1");
    setText(edge, "dir", direction);
    return edge;
  }

  void addFrames() {
    for (std::size_t i = 0; i < m_problem.frames.size(); ++i) {
      const LayoutProblem::Frame& frame = m_problem.frames[i];
      Agraph_t* const outer = frame.outer < 0 ? m_graph.get() : m_clusters[static_cast<std::size_t>(frame.outer)];
      Agraph_t* const cluster = agsubg(outer, mutableText(fmt::format("cluster{}", i)), 1);
      setText(cluster, "margin", fmt::format("{}", m_gaps.frame));
      setTitle(cluster, frame.title);
      for (const int box : frame.boxes) agsubnode(cluster, nodeOf(box), 1);
      m_clusters.push_back(cluster);
    }
    addLabelsToFrames();
  }

  /// A label is where both ends of its wire are.
  void addLabelsToFrames() {
    std::vector<int> frameOf(m_problem.boxes.size(), kNone);
    for (std::size_t i = 0; i < m_problem.frames.size(); ++i)
      for (const int box : m_problem.frames[i].boxes) frameOf[static_cast<std::size_t>(box)] = static_cast<int>(i);
    for (std::size_t i = 0; i < m_problem.wires.size(); ++i) {
      const LayoutProblem::Wire& wire = m_problem.wires[i];
      const int frame =
          commonFrame(frameOf[static_cast<std::size_t>(wire.from)], frameOf[static_cast<std::size_t>(wire.to)]);
      if (m_labels[i] && frame != kNone) agsubnode(m_clusters[static_cast<std::size_t>(frame)], m_labels[i], 1);
    }
  }

  /// Outer frames come first.
  int commonFrame(int a, int b) const {
    while (a != b) {
      int& later = a > b ? a : b;
      later = m_problem.frames[static_cast<std::size_t>(later)].outer;
    }
    return a;
  }

  double height() const { return GD_bb(m_graph.get()).UR.y; }

  /// Graphviz's y grows upwards.
  DrawnPoint placeOf(const pointf& point) const { return {point.x, height() - point.y}; }

  GraphLayout places() const {
    GraphLayout layout{.size = {GD_bb(m_graph.get()).UR.x, height()}};
    for (Agnode_t* node : m_nodes) layout.boxes.push_back(placeOf(ND_coord(node)));
    for (std::size_t i = 0; i < m_edges.size(); ++i) layout.wires.push_back(wireOf(m_edges[i], m_labels[i]));
    for (Agraph_t* cluster : m_clusters) layout.frames.push_back(frameOf(cluster));
    return layout;
  }

  GraphLayout::Wire wireOf(Agedge_t* edge, Agnode_t* label) const {
    GraphLayout::Wire wire;
    if (label) {
      wire.label = placeOf(ND_coord(label));
      addCurve(agfstin(m_graph.get(), label), wire);
    }
    addCurve(edge, wire);
    return wire;
  }

  void addCurve(Agedge_t* edge, GraphLayout::Wire& wire) const {
    const splines* drawn = ED_spl(edge);
    if (!drawn || drawn->size == 0) return;
    const bezier& bends = drawn->list[0];
    GraphLayout::Curve curve;
    for (std::size_t i = 0; i < static_cast<std::size_t>(bends.size); ++i) curve.push_back(placeOf(bends.list[i]));
    wire.tip = bends.eflag ? placeOf(bends.ep) : curve.back();
    wire.curves.push_back(std::move(curve));
  }

  GraphLayout::Frame frameOf(Agraph_t* cluster) const {
    const boxf& bounds = GD_bb(cluster);
    GraphLayout::Frame frame;
    frame.rect.topLeft = placeOf({bounds.LL.x, bounds.UR.y});
    frame.rect.size = {bounds.UR.x - bounds.LL.x, bounds.UR.y - bounds.LL.y};
    if (const textlabel_t* title = GD_label(cluster)) frame.title = placeOf(title->pos);
    return frame;
  }

  const LayoutProblem& m_problem;
  const char* m_direction;
  LayoutGaps m_gaps;
  ContextHandle m_context;
  GraphHandle m_graph;  // before its context is freed
  std::vector<Agnode_t*> m_nodes;
  std::vector<Agnode_t*> m_labels;  // by wire; nullptr: none
  std::vector<Agedge_t*> m_edges;   // by wire: that with the arrow
  std::vector<Agraph_t*> m_clusters;
};

/// Graphviz has global variables.
std::mutex& oneAtATime() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

Result<GraphLayout> layOutWithGraphviz(const LayoutProblem& problem) {
  const std::lock_guard lock(oneAtATime());
  const QuietErrors quiet;
  return DotLayout(problem, problem.flow == Flow::Down ? "TB" : "BT", {}).run();
}

Result<GraphLayout> layOutInRows(const LayoutProblem& problem, const LayoutGaps& gaps) {
  const std::lock_guard lock(oneAtATime());
  const QuietErrors quiet;
  return DotLayout(problem, "LR", gaps).run();
}

}  // namespace fuseline
