// A fragment brings the blocks and symbols that its ops name.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/fragments.h"

#include "core/document/block_operation.h"
#include "core/document/file_format.h"
#include "core/edit/apply_edit.h"
#include "core/edit/block_edits.h"
#include "core/edit/edit_script.h"
#include "core/edit/links.h"
#include "core/edit/reroutes.h"
#include "core/edit/view_grid.h"
#include "core/lowering/expression.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace fuseline {

namespace {

/// Every name that stands in a text of the value, such as M and H of "2*M + H".
void collectNames(const Json& value, std::set<std::string>& names) {
  if (value.is_structured())
    for (const Json& member : value) collectNames(member, names);
  if (!value.is_string()) return;
  for (std::string& name : symbolNames(value.get_ref<const std::string&>())) names.insert(std::move(name));
}

/// The symbols of the document that the ops of a piece of it name, and those that these name.
std::set<std::string> symbolsUsedBy(const PipelineDocument& document, const PipelineDocument& piece) {
  std::set<std::string> names;
  for (const DocumentOp& op : piece.ops()) collectNames(op.attributes, names);
  for (const auto& [name, block] : piece.blocks()) {
    for (const DocumentInput& input : block.inputs) collectNames(input.shape, names);
    for (const DocumentOp& op : block.ops) collectNames(op.attributes, names);
  }
  std::size_t numBefore = 0;
  while (std::exchange(numBefore, names.size()) != names.size())
    for (const auto& [name, value] : document.symbols().items())
      if (names.contains(name)) collectNames(value, names);
  std::erase_if(names, [&](const std::string& name) { return !document.symbols().contains(name); });
  return names;
}

}  // namespace

std::string copyFragment(const PipelineDocument& document, const std::set<std::string>& ids,
                         const std::vector<std::string>& frames) {
  PipelineDocument fragment;
  const auto isChosen = [&](const std::string& id) { return ids.contains(id); };
  for (const DocumentOp& op : document.ops()) {
    if (!isChosen(op.id)) continue;
    (void)applyEdit(fragment, AddOp{.op = op});
    if (const auto position = positionOf(document.pipeline(), op.id)) {
      (void)applyEdit(fragment, MoveNode{.id = op.id, .position = position});
    }
  }
  for (const Wire& wire : document.wires()) {
    if (fragment.findOp(wire.from.node) && fragment.findOp(wire.to.node))
      (void)applyEdit(fragment, AddWire{.wire = wire});
  }
  const auto reroutes = reroutesOf(document.pipeline());
  for (const Link& link : linksOf(fragment))
    if (const auto points = reroutes.find(rerouteKey(link)); points != reroutes.end())
      for (const Reroute& point : points->second)
        (void)applyEdit(fragment, MoveNode{point.id, point.position, static_cast<int>(fragment.positions().size())});
  for (const std::string& id : frames)
    if (const DocumentFrame* frame = document.findFrame(id)) (void)applyEdit(fragment, AddFrame{.frame = *frame});
  if (fragment.ops().empty() && fragment.frames().empty()) return {};
  for (const std::string& name : blocksUsedBy(document, fragment.ops())) {
    (void)applyEdit(fragment, AddBlock{.name = name, .block = *document.findBlock(name)});
  }
  for (const std::string& name : symbolsUsedBy(document, fragment))
    (void)applyEdit(fragment, SetSymbol{.name = name, .value = document.symbols()[name]});
  Json json = toJson(fragment);
  json["fragment"] = true;
  for (const Wire& wire : document.wires())
    if (fragment.findOp(wire.to.node) && !fragment.findOp(wire.from.node))
      json["incoming"].push_back(Json::array({toString(wire.from), toString(wire.to)}));
  return json.dump(2);
}

namespace {

Error notPastable() { return Error{.message = "The clipboard holds no ops. Copy some in Fuseline first."}; }

/// A piece of a pipeline, or a whole one, from text. Errors: it is neither, or its text is broken, with the place.
Result<PipelineDocument> pastedDocument(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("pipeline")) return notPastable();
  LoadedDocument loaded = parseDocument(text);
  if (loaded.document.isReadOnly()) return Error{loaded.diagnostics.front().message};
  const PipelineDocument& pasted = loaded.document;
  if (pasted.ops().empty() && pasted.inputs().empty() && pasted.frames().empty()) return notPastable();
  return std::move(loaded.document);
}

std::optional<int> lowestRow(const PipelineDocument& document) {
  std::optional<int> lowest;
  for (const auto& [id, position] : document.positions()) lowest = std::max(position.y, lowest.value_or(position.y));
  for (const DocumentFrame& frame : document.frames())
    if (frame.area) lowest = std::max(frame.area->y + frame.area->height, lowest.value_or(frame.area->y));
  return lowest;
}

/// Adds the contents of another document under unused ids.
class Paste {
 public:
  Paste(const PipelineDocument& document, const PipelineDocument& pasted, Position offset)
      : m_before(document), m_pasted(pasted), m_script(document), m_offset(offset) {}

  /// incoming: pairs of a node of the document and a port of what is pasted, as texts.
  FragmentEdit run(bool isWhole, const Json& incoming) && {
    if (isWhole) takeSettings();
    for (const auto& [name, value] : m_pasted.symbols().items())
      if (!m_before.symbols().contains(name)) m_script.add(SetSymbol{.name = name, .value = value});
    addBlocks();
    for (const DocumentInput& input : m_pasted.inputs()) add<AddInput>(input);
    for (const DocumentOp& op : m_pasted.ops()) add<AddOp>(withBlock(op));
    for (const Wire& wire : m_pasted.wires())
      if (isPasted(wire.from) && isPasted(wire.to)) addWire(wire);
    for (DocumentOutput output : m_pasted.outputs()) {
      output.from = isPasted(output.from) ? renamed(output.from) : Endpoint();
      add<AddOutput>(output);
    }
    for (const Json& wire : incoming) addIncoming(wire);
    for (const DocumentFrame& frame : m_pasted.frames()) addFrame(frame);
    const std::size_t numNodes = m_newIds.size();
    m_result.edit = std::move(m_script).finish(numNodes == 0 ? "Paste frames" : countLabel("Paste", numNodes));
    return std::move(m_result);
  }

 private:
  /// An empty document becomes the other one; below others it stands apart from them.
  void takeSettings() {
    const bool isEmpty = m_before.ops().empty() && m_before.inputs().empty() && m_before.outputs().empty();
    if (isEmpty && !m_pasted.recipe().is_null()) m_script.add(SetRecipe{m_pasted.recipe()});
    if (isEmpty && !m_pasted.fusion().is_null()) m_script.add(SetFusion{m_pasted.fusion()});
    int top = 0;
    for (const auto& [id, position] : m_pasted.positions()) top = std::min(position.y, top);
    for (const DocumentFrame& frame : m_pasted.frames())
      if (frame.area) top = std::min(frame.area->y, top);
    const std::optional<int> lowest = isEmpty ? std::nullopt : lowestRow(m_before);
    m_offset = lowest ? Position{0, *lowest + kRowPitchPx - top} : Position();
  }

  /// A block that is there already serves the new instances, too, if it means the same.
  void addBlocks() {
    nameBlocks();
    for (const auto& [name, block] : m_pasted.blocks()) {
      const std::string& newName = m_newBlocks.at(name);
      if (newName == name && m_before.findBlock(name)) continue;
      DocumentBlock named = block;
      for (DocumentOp& op : named.ops) op = withBlock(op);
      m_script.add(AddBlock{.name = newName, .block = std::move(named)});
    }
  }

  /// Until no block holds one that has another name now.
  void nameBlocks() {
    for (const auto& [name, block] : m_pasted.blocks()) m_newBlocks[name] = name;
    for (bool isDone = false; !std::exchange(isDone, true);)
      for (const auto& [name, block] : m_pasted.blocks()) {
        const DocumentBlock* there = m_before.findBlock(name);
        if (!there || m_newBlocks[name] != name || (isAlike(block, *there) && !holdsNewName(block))) continue;
        m_newBlocks[name] = freeBlockName(name);
        isDone = false;
      }
  }

  static bool isAlike(DocumentBlock block, DocumentBlock other) {
    for (DocumentBlock* each : {&block, &other}) {
      each->positions.clear();
      each->frames.clear();
    }
    return block == other;
  }

  bool holdsNewName(const DocumentBlock& block) const {
    return std::ranges::any_of(block.ops, [this](const DocumentOp& op) { return !(withBlock(op) == op); });
  }

  std::string freeBlockName(const std::string& name) const {
    std::string next;
    int number = 1;
    const auto isNew = [&](const auto& entry) { return entry.second == next; };
    do next = name + std::to_string(++number);
    while (m_before.findBlock(next) || m_pasted.findBlock(next) || std::ranges::any_of(m_newBlocks, isNew));
    return next;
  }

  DocumentOp withBlock(DocumentOp op) const {
    const auto found = m_newBlocks.find(std::string(blockNameOf(op)));
    if (found != m_newBlocks.end()) op.operation = instanceOf(found->second);
    return op;
  }

  template <class Addition, class Node>
  void add(Node node) {
    const std::string original = std::exchange(node.id, m_script.document().freeId(node.id));
    m_newIds[original] = node.id;
    m_result.ids.insert(node.id);
    m_script.add(Addition{node});
    if (const auto p = positionOf(m_pasted.pipeline(), original))
      m_script.add(MoveNode{.id = node.id, .position = Position{p->x + m_offset.x, p->y + m_offset.y}});
  }

  void addWire(const Wire& wire) {
    const Link link{.from = renamed(wire.from), .to = renamed(wire.to)};
    m_script.add(AddWire{.wire = {link.from, link.to}});
    const auto points = m_reroutes.find(rerouteKey({.from = wire.from, .to = wire.to}));
    if (points == m_reroutes.end()) return;
    for (std::size_t i = 0; i < points->second.size(); ++i) {
      const Position& place = points->second[i].position;
      const Position moved{place.x + m_offset.x, place.y + m_offset.y};
      m_script.add(addReroute(m_script.document().pipeline(), link, moved, i));
    }
  }

  /// Text of the clipboard may come from anywhere: what is no wire of this document is left out.
  void addIncoming(const Json& wire) {
    if (!wire.is_array() || wire.size() != 2 || !wire[0].is_string() || !wire[1].is_string()) return;
    const Endpoint from = parseEndpoint(wire[0].get<std::string>());
    const Endpoint to = parseEndpoint(wire[1].get<std::string>());
    if (!isPasted(to) || !m_before.idExists(from.node)) return;
    if (linkVerdict(m_script.document(), from, renamed(to))) m_script.add(AddWire{.wire = {from, renamed(to)}});
  }

  void addFrame(DocumentFrame frame) {
    if (!frame.area || frame.id.empty()) return;
    frame.id = m_script.document().freeFrameId(frame.id);
    frame.area->x += m_offset.x;
    frame.area->y += m_offset.y;
    m_result.frames.push_back(frame.id);
    m_script.add(AddFrame{.frame = std::move(frame)});
  }

  /// An id that was not pasted could accidentally be a node of the document.
  bool isPasted(const Endpoint& endpoint) const { return m_newIds.contains(endpoint.node); }
  Endpoint renamed(const Endpoint& endpoint) const { return {m_newIds.at(endpoint.node), endpoint.port}; }

  const PipelineDocument& m_before;
  const PipelineDocument& m_pasted;
  EditScript m_script;
  Position m_offset;
  const std::map<std::string, std::vector<Reroute>> m_reroutes = reroutesOf(m_pasted.pipeline());
  std::map<std::string, std::string> m_newIds;
  std::map<std::string, std::string> m_newBlocks;  // the name of each pasted one
  FragmentEdit m_result;
};

}  // namespace

Result<FragmentEdit> pasteFragment(const PipelineDocument& document, std::string_view text, Position offset,
                                   IncomingWires incoming) {
  const Result<PipelineDocument> pasted = pastedDocument(text);
  if (!pasted) return pasted.error();
  const Json wires = incoming == IncomingWires::Kept
                         ? Json::parse(text, nullptr, false).value("incoming", Json::array())
                         : Json::array();
  return Paste(document, *pasted, offset).run(!pasted->outputs().empty() || !pasted->inputs().empty(), wires);
}

}  // namespace fuseline
