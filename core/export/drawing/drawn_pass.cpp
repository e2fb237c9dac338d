// Makes boxes of ops and ends, wires of values, and frames of fusions and instances of blocks.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/drawing/drawn_pass.h"

#include "core/graph/instances.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

FrameKind kindOf(const FusionRule& rule, Phase phase) {
  if (rule.pass == FusionPass::Joint) return FrameKind::Joint;
  return phase == Phase::Forward ? FrameKind::Forward : FrameKind::Backward;
}

bool isInside(std::string_view path, std::string_view instance) {
  return path.starts_with(instance) && (path.size() == instance.size() || path[instance.size()] == '.');
}

class PassMaker {
 public:
  PassMaker(const Graph& graph, const std::vector<DrawnFusion>& fusions, Phase phase)
      : m_graph(graph), m_fusions(fusions), m_closed(closedInstances(graph)), m_boxOf(graph.nodes().size(), kNone) {
    m_pass.phase = phase;
  }

  DrawnPass pass() && {
    addOps();
    if (isBackward() && m_pass.boxes.empty()) return std::move(m_pass);
    for (std::size_t value = 0; value < m_graph.values().size(); ++value) addWires(static_cast<ValueId>(value));
    for (const GraphOutput& output : m_graph.outputs()) addOutput(output);
    addBlocks();
    addFusions();
    m_pass.boxOfNode = std::move(m_boxOf);
    return std::move(m_pass);
  }

 private:
  static constexpr int kNone = -1;

  bool isBackward() const { return m_pass.phase == Phase::Backward; }
  int& boxOf(NodeId node) { return m_boxOf[static_cast<std::size_t>(node)]; }
  const std::string& closedAround(NodeId node) const { return m_closed[static_cast<std::size_t>(node)]; }

  int add(DrawnBox box) {
    m_pass.boxes.push_back(std::move(box));
    return static_cast<int>(m_pass.boxes.size()) - 1;
  }

  void addOps() {
    for (NodeId id = 0; id < static_cast<NodeId>(m_graph.nodes().size()); ++id) {
      const Node& node = m_graph.node(id);
      if (isBackward() && !node.takesPartInBackward()) continue;
      if (!closedAround(id).empty())
        boxOf(id) = instanceBox(id);
      else
        boxOf(id) = add({.node = id,
                         .name = node.id,
                         .type = node.operation->name,
                         .category = node.operation->category,
                         .tip = fmt::format("{}: {}", node.id, node.operation->name)});
    }
    for (const auto& [path, box] : m_instanceBoxes) describe(path, box);
  }

  int instanceBox(NodeId first) {
    const std::string& path = closedAround(first);
    const auto [found, isNew] = m_instanceBoxes.try_emplace(path, kNone);
    if (isNew) found->second = add({.node = first, .name = path, .isInstance = true});
    return found->second;
  }

  void describe(const std::string& path, int index) {
    DrawnBox& box = m_pass.boxes[static_cast<std::size_t>(index)];
    std::string block;
    for (NodeId id = box.node; id < static_cast<NodeId>(m_graph.nodes().size()) && block.empty(); ++id)
      if (instanceOf(m_graph.node(id)) == path) block = m_graph.node(id).block;
    box.type = fmt::format("{}, {} ops", block.empty() ? "block" : block, std::ranges::count(m_boxOf, index));
    box.tip = fmt::format("{}: an instance of {}", path, block.empty() ? "a block" : "block " + block);
  }

  int addEnd(std::string name, std::string tip) {
    const std::string gradient = isBackward() ? "gradient of " : "";
    return add({.name = gradient + std::move(name), .tip = gradient + std::move(tip)});
  }

  /// In backward along those that read the gradient, which is the result of the op that read the value.
  void addWires(ValueId id) {
    const Value& value = m_graph.value(id);
    if (isBackward() && !value.needsGradient) return;
    std::set<int> instances;  // a value enters one by one wire
    for (const Use& use : value.uses) {
      const int reader = boxOf(use.node);
      if (reader == kNone || (isBackward() && !needsGradient(use))) continue;
      const int source = sourceOf(id);
      if (source == kNone || source == reader) continue;
      if (!closedAround(use.node).empty() && !instances.insert(reader).second) continue;
      addWire(source, reader, value, use.slot == 0);
    }
  }

  /// The op that makes a value, or the end of an input, which comes to be when it is first read.
  int sourceOf(ValueId id) {
    const Value& value = m_graph.value(id);
    if (value.producer >= 0) return boxOf(value.producer);
    const auto [end, isNew] = m_inputEnds.try_emplace(id, kNone);
    if (isNew) end->second = addEnd(value.name, "input " + value.name);
    return end->second;
  }

  bool needsGradient(const Use& use) const {
    const std::vector<bool>& inputs = m_graph.node(use.node).needs.inputs;
    const auto slot = static_cast<std::size_t>(use.slot);
    return slot < inputs.size() && inputs[slot];
  }

  void addWire(int from, int to, const Value& value, bool isMain) {
    if (isBackward()) std::swap(from, to);
    m_pass.wires.push_back({.from = from, .to = to, .label = toString(value.spec), .isMain = isMain});
  }

  void addOutput(const GraphOutput& output) {
    const Value& value = m_graph.value(output.value);
    if (isBackward() && !value.needsGradient) return;
    if (const int source = sourceOf(output.value); source != kNone)
      addWire(source, addEnd(output.name, "output " + output.name), value, true);
  }

  // ---------------------------------------------------------------------------------------------------------- frames

  /// Outer instances come before inner ones, because a path sorts before paths that begin with it.
  void addBlocks() {
    for (const auto& [path, block] : instances()) {
      if (isCrossed(path)) continue;
      m_blockFrame[path] = static_cast<int>(m_pass.frames.size());
      m_pass.frames.push_back({.kind = FrameKind::Block,
                               .title = path.substr(path.rfind('.') + 1) + (block.empty() ? "" : ": " + block),
                               .tip = "block " + path + (block.empty() ? "" : ": " + block),
                               .outer = innermostFrame(outerOf(path))});
    }
    for (NodeId id = 0; id < static_cast<NodeId>(m_graph.nodes().size()); ++id) {
      const int box = boxOf(id);
      if (box != kNone && m_pass.boxes[static_cast<std::size_t>(box)].node != id) continue;
      const int frame = innermostFrame(openInstanceOf(id));
      if (box != kNone && frame != kNone) m_pass.frames[static_cast<std::size_t>(frame)].boxes.push_back(box);
    }
  }

  /// Paths of all that have a box in them, each with the block that it is an instance of, as far as an op of it says.
  std::map<std::string, std::string> instances() const {
    std::map<std::string, std::string> blocks;
    for (std::size_t i = 0; i < m_boxOf.size(); ++i) {
      if (m_boxOf[i] == kNone) continue;
      const Node& node = m_graph.nodes()[i];
      std::string path = openInstanceOf(static_cast<NodeId>(i));
      if (path == instanceOf(node) && !path.empty()) blocks[path] = node.block;
      if (!path.empty()) blocks.emplace(path, "");
      for (path = outerOf(path); !path.empty(); path = outerOf(path)) blocks.emplace(path, "");
    }
    return blocks;
  }

  /// The innermost that is not closed.
  std::string openInstanceOf(NodeId id) const {
    return closedAround(id).empty() ? instanceOf(m_graph.node(id)) : outerOf(closedAround(id));
  }

  static std::string outerOf(const std::string& path) {
    const std::size_t end = path.rfind('.');
    return end == std::string::npos ? std::string() : path.substr(0, end);
  }

  int innermostFrame(std::string path) const {
    for (; !path.empty(); path = outerOf(path))
      if (const auto found = m_blockFrame.find(path); found != m_blockFrame.end()) return found->second;
    return kNone;
  }

  bool isCrossed(const std::string& path) const {
    return std::ranges::any_of(m_fusions, [&](const DrawnFusion& fusion) {
      const auto isIn = [&](NodeId id) { return isInside(instanceOf(m_graph.node(id)), path); };
      const auto numIn = std::ranges::count_if(fusion.nodes, isIn);
      return numIn > 0 && numIn < static_cast<std::ptrdiff_t>(fusion.nodes.size());
    });
  }

  /// Takes its boxes out of the frame around it.
  void addFusions() {
    for (const DrawnFusion& fusion : m_fusions) {
      if (isClosed(fusion)) {
        nameInTip(fusion);
        continue;
      }
      DrawnFrame frame{.kind = fusion.kind, .title = fusion.title, .figure = fusion.figure, .tip = fusion.title};
      for (const NodeId id : fusion.nodes)
        if (boxOf(id) != kNone) frame.boxes.push_back(boxOf(id));
      if (frame.boxes.empty()) continue;
      frame.outer = innermostFrame(instanceOf(m_graph.node(fusion.nodes.front())));
      if (frame.outer != kNone)
        std::erase_if(m_pass.frames[static_cast<std::size_t>(frame.outer)].boxes,
                      [&](int box) { return std::ranges::count(frame.boxes, box) > 0; });
      m_pass.frames.push_back(std::move(frame));
    }
  }

  bool isClosed(const DrawnFusion& fusion) const {
    return std::ranges::any_of(fusion.nodes, [&](NodeId id) { return !closedAround(id).empty(); });
  }

  void nameInTip(const DrawnFusion& fusion) {
    const auto closed = std::ranges::find_if(fusion.nodes, [&](NodeId id) { return !closedAround(id).empty(); });
    if (const int box = boxOf(*closed); box != kNone)
      m_pass.boxes[static_cast<std::size_t>(box)].tip += "\n" + fusion.title;
  }

  const Graph& m_graph;
  const std::vector<DrawnFusion>& m_fusions;
  std::vector<std::string> m_closed;  // by node
  std::map<std::string, int> m_instanceBoxes;
  std::vector<int> m_boxOf;  // by node
  std::map<ValueId, int> m_inputEnds;
  std::map<std::string, int> m_blockFrame;
  DrawnPass m_pass;
};

}  // namespace

DrawnBox* DrawnPass::boxOf(NodeId node) { return const_cast<DrawnBox*>(std::as_const(*this).boxOf(node)); }

const DrawnBox* DrawnPass::boxOf(NodeId node) const {
  if (node < 0 || static_cast<std::size_t>(node) >= boxOfNode.size()) return nullptr;
  const int box = boxOfNode[static_cast<std::size_t>(node)];
  return box < 0 ? nullptr : &boxes[static_cast<std::size_t>(box)];
}

std::vector<DrawnFusion> fusionsOf(const Graph& graph, const std::vector<FusedOperation>& entries, Phase phase) {
  std::vector<DrawnFusion> fusions;
  for (const FusedOperation& entry : entries)
    if (entry.isFused())
      fusions.push_back({.kind = kindOf(*entry.rule, phase), .title = entry.name(graph), .nodes = entry.nodes});
  return fusions;
}

DrawnPass drawnPass(const Graph& graph, const std::vector<DrawnFusion>& fusions, Phase phase) {
  return PassMaker(graph, fusions, phase).pass();
}

}  // namespace fuseline
