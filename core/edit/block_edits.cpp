// Works on lists with exact indices: wires from last to first, so that indices stay valid.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/block_edits.h"

#include "core/document/format_version.h"
#include "core/document/node_id.h"
#include "core/edit/edit_script.h"
#include "core/edit/moved_places.h"
#include "core/lowering/document_operation.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <queue>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

std::string lowerCase(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool holds(const FrameArea& area, const Position& corner) {
  return corner.x >= area.x && corner.x < area.x + area.width && corner.y >= area.y && corner.y < area.y + area.height;
}

/// Nothing: it would be further away than a frame may be.
std::optional<DocumentFrame> shifted(DocumentFrame frame, std::int64_t x, std::int64_t y) {
  const std::int64_t newX = x + frame.area->x;
  const std::int64_t newY = y + frame.area->y;
  if (std::max(std::abs(newX), std::abs(newY)) > kMaxFramePlace) return std::nullopt;
  frame.area->x = static_cast<int>(newX);
  frame.area->y = static_cast<int>(newY);
  return frame;
}

/// Nothing: it does not fit into a position, and the op stands where it is arranged.
std::optional<Position> shifted(const Position& position, std::int64_t x, std::int64_t y) {
  const std::int64_t newX = x + position.x;
  const std::int64_t newY = y + position.y;
  if (!std::in_range<int>(newX) || !std::in_range<int>(newY)) return std::nullopt;
  return Position{static_cast<int>(newX), static_cast<int>(newY)};
}

std::unordered_set<std::string> idsOf(const DocumentBlock& block) {
  std::unordered_set<std::string> ids;
  for (const DocumentInput& input : block.inputs) ids.insert(input.id);
  for (const DocumentOp& op : block.ops) ids.insert(op.id);
  for (const DocumentOutput& output : block.outputs) ids.insert(output.id);
  return ids;
}

/// Builds the block and the edits together.
class BlockMaker {
 public:
  BlockMaker(const PipelineDocument& document, std::span<const std::string> ids, std::string name)
      : m_document(document), m_ids(ids.begin(), ids.end()), m_name(std::move(name)) {}

  Result<NewBlock> make() {
    if (const Verdict verdict = check(); !verdict) return Error{verdict.reason()};
    m_instance = nameInstance();
    sortChosen();
    addInputs();
    addOps();
    addOutputs();
    return NewBlock{EditGroup{.label = "Make block " + m_name, .edits = edits()}, m_instance, moves()};
  }

 private:
  // The chosen ops leave, so their ids are free.
  std::string nameInstance() const {
    std::unordered_set<std::string> taken = idsOf(m_document.pipeline());
    for (const std::string& id : m_ids) taken.erase(id);
    return freeId(taken, lowerCase(m_name));
  }

  bool isChosen(const std::string& id) const { return m_ids.contains(id); }

  Verdict check() const {
    if (const Verdict verdict = checkId(m_name); !verdict)
      return Verdict::no("Invalid block name. " + verdict.reason());
    if (m_document.findBlock(m_name)) return Verdict::no(fmt::format("A block named {} already exists.", m_name));
    if (m_ids.empty()) return Verdict::no("No ops are selected. A block needs at least one.");
    std::unordered_set<std::string_view> ops;
    std::unordered_map<std::string_view, int> counts;
    for (const DocumentInput& input : m_document.inputs()) ++counts[input.id];
    for (const DocumentOutput& output : m_document.outputs()) ++counts[output.id];
    for (const DocumentOp& op : m_document.ops()) {
      ops.insert(op.id);
      ++counts[op.id];
    }
    for (const std::string& id : m_ids) {
      if (!ops.contains(id)) return Verdict::no(fmt::format("There is no op {}; a block must consist of ops.", id));
      if (counts[id] > 1)
        return Verdict::no(fmt::format("{} inputs, ops or outputs have the id {}. Rename them first.", counts[id], id));
    }
    return checkConvex();
  }

  // A path that leaves the block and comes back would make its instance wait for itself.
  Verdict checkConvex() const {
    std::unordered_multimap<std::string_view, std::string_view> readers;
    for (const Wire& wire : m_document.wires()) readers.emplace(wire.from.node, wire.to.node);
    std::unordered_map<std::string_view, std::string_view> cameFrom;
    std::vector<std::string_view> open(m_ids.begin(), m_ids.end());
    while (!open.empty()) {
      const std::string_view node = open.back();
      open.pop_back();
      const auto [begin, end] = readers.equal_range(node);
      for (auto reader = begin; reader != end; ++reader) {
        const std::string_view next = reader->second;
        const bool isInside = m_ids.contains(std::string(next));
        if (isInside && !m_ids.contains(std::string(node)))
          return Verdict::no(
              fmt::format("{0} is not selected, but is between selected ops: it consumes the output of one, and {1} "
                          "consumes the output of {0}. Select {0} too.",
                          node, next));
        if (!isInside && cameFrom.emplace(next, node).second) open.push_back(next);
      }
    }
    return Verdict::yes();
  }

  // Along the wires; the order of the document where they leave a choice or run in a circle.
  void sortChosen() {
    std::map<std::string_view, int> numOpen;
    std::map<std::string_view, std::size_t> places;
    const auto& ops = m_document.ops();
    for (std::size_t i = 0; i < ops.size(); ++i)
      if (isChosen(ops[i].id)) places.emplace(ops[i].id, i);
    std::unordered_multimap<std::string_view, std::string_view> readers;
    for (const Wire& wire : m_document.wires())
      if (isChosen(wire.from.node) && isChosen(wire.to.node)) {
        readers.emplace(wire.from.node, wire.to.node);
        ++numOpen[wire.to.node];
      }
    std::set<std::size_t> ready;
    for (const auto& [id, place] : places)
      if (numOpen[id] == 0) ready.insert(place);
    while (!places.empty()) {
      const std::size_t next = ready.empty() ? places.begin()->second : *ready.begin();
      ready.erase(next);
      if (places.erase(ops[next].id) == 0) continue;
      m_order.push_back(next);
      const auto [begin, end] = readers.equal_range(ops[next].id);
      for (auto reader = begin; reader != end; ++reader)
        if (--numOpen[reader->second] == 0 && places.contains(reader->second)) ready.insert(places[reader->second]);
    }
  }

  const DocumentOp& op(std::size_t index) const { return m_document.ops()[index]; }

  std::string takeId(const std::string& stem) {
    std::string id = freeId(m_taken, stem);
    m_taken.insert(id);
    return id;
  }

  // The ports of the chosen ops are known by their wires, and by their type where that is known.
  void addInputs() {
    for (const std::size_t index : m_order) m_taken.insert(op(index).id);
    std::map<std::string_view, std::vector<const Wire*>> feeds;
    for (const Wire& wire : m_document.wires())
      if (isChosen(wire.to.node)) feeds[wire.to.node].push_back(&wire);
    for (const std::size_t index : m_order) {
      const auto type = operationOf(m_document, op(index));
      std::vector<const Wire*>& wires = feeds[op(index).id];
      if (type) std::ranges::stable_sort(wires, {}, [&](const Wire* wire) { return type->inputIndex(wire->to.port); });
      for (const Wire* wire : wires)
        if (!isChosen(wire->from.node)) addInput(*wire);
      if (type) addUnfed(op(index), *type, wires);
    }
  }

  void addInput(const Wire& wire) {
    std::string& input = m_inputOf[wire.from];
    if (input.empty()) {
      input = takeId(wire.to.port);
      m_block.inputs.push_back({.id = input, .dtype = {}, .shape = nullptr});
    }
    m_block.wires.push_back({{input, {}}, wire.to});
  }

  void addUnfed(const DocumentOp& reader, const FusibleOperation& type, const std::vector<const Wire*>& wires) {
    for (const Port& port : type.inputs) {
      if (std::ranges::any_of(wires, [&](const Wire* wire) { return wire->to.port == port.name; })) continue;
      const std::string input = takeId(port.name);
      m_block.inputs.push_back({.id = input, .dtype = {}, .shape = nullptr});
      m_block.wires.push_back({{input, {}}, {reader.id, port.name}});
    }
  }

  void addOps() {
    for (const std::size_t index : m_order) m_block.ops.push_back(op(index));
    for (const Wire& wire : m_document.wires())
      if (isChosen(wire.from.node) && isChosen(wire.to.node)) m_block.wires.push_back(wire);
    for (const std::size_t index : m_order)
      if (const auto position = positionOf(m_document.pipeline(), op(index).id)) {
        if (!m_origin) m_origin = *position;
        if (const auto inside = shifted(*position, -std::int64_t{m_origin->x}, -std::int64_t{m_origin->y}))
          m_block.positions.emplace_back(op(index).id, *inside);
      }
    for (const DocumentFrame& frame : m_document.frames())
      if (goesInside(frame)) m_block.frames.push_back(*fromOrigin(frame));
  }

  std::optional<DocumentFrame> fromOrigin(const DocumentFrame& frame) const {
    return shifted(frame, -std::int64_t{m_origin->x}, -std::int64_t{m_origin->y});
  }

  // A frame around chosen ops alone goes with them. Their corners are all that is known of where they stand.
  bool goesInside(const DocumentFrame& frame) const {
    if (!frame.area || frame.isNote() || frame.id.empty() || !m_origin || !fromOrigin(frame)) return false;
    bool hasChosen = false;
    for (const auto& [id, position] : m_document.positions()) {
      if (!holds(*frame.area, position)) continue;
      if (!isChosen(id)) return false;
      hasChosen = true;
    }
    return hasChosen;
  }

  // The main output is the main result of the op that comes last.
  void addOutputs() {
    std::set<Endpoint> readOutside;
    std::set<Endpoint> readInside;
    for (const Wire& wire : m_document.wires())
      if (isChosen(wire.from.node)) (isChosen(wire.to.node) ? readInside : readOutside).insert(wire.from);
    for (const DocumentOutput& output : m_document.outputs())
      if (isChosen(output.from.node)) readOutside.insert(output.from);
    for (const std::size_t index : m_order)
      if (const auto type = operationOf(m_document, op(index)); type && !type->outputs.empty())
        if (const Endpoint main = {op(index).id, type->outputs.front().name}; !readInside.contains(main))
          readOutside.insert(main);
    std::vector<Endpoint> sources(readOutside.begin(), readOutside.end());
    std::ranges::stable_sort(sources, {}, [&](const Endpoint& from) { return outputRank(from); });
    for (const Endpoint& from : sources) {
      m_outputOf[from] = takeId(from.port);
      m_block.outputs.push_back({.id = m_outputOf[from], .from = from});
    }
  }

  std::pair<bool, std::ptrdiff_t> outputRank(const Endpoint& from) const {
    const auto place =
        std::ranges::find(m_order, from.node, [&](std::size_t index) -> const std::string& { return op(index).id; });
    const auto type = operationOf(m_document, op(*place));
    return {type && type->outputIndex(from.port) > 0, m_order.end() - place};
  }

  std::vector<Edit> edits() {
    m_edits.push_back(AddBlock{m_name, m_block});
    replaceWires();
    replaceOutputs();
    replaceOps();
    replacePositions();
    addMovedPlaces(m_edits, m_document, moves());
    return std::move(m_edits);
  }

  void replaceWires() {
    const auto& wires = m_document.wires();
    std::map<Endpoint, std::size_t> firstReader;
    for (std::size_t i = 0; i < wires.size(); ++i)
      if (isChosen(wires[i].to.node)) firstReader.emplace(wires[i].from, i);
    for (std::size_t i = wires.size(); i-- > 0;) {
      const Wire& wire = wires[i];
      const bool isFromInside = isChosen(wire.from.node);
      const bool isToInside = isChosen(wire.to.node);
      if (!isFromInside && !isToInside) continue;
      const auto index = static_cast<int>(i);
      m_edits.push_back(RemoveWire{wire, index});
      if (isFromInside && !isToInside)
        m_edits.push_back(AddWire{{{m_instance, m_outputOf[wire.from]}, wire.to}, index});
      if (!isFromInside && firstReader[wire.from] == i)
        m_edits.push_back(AddWire{{wire.from, {m_instance, m_inputOf[wire.from]}}, index});
    }
  }

  void replaceOutputs() {
    for (std::size_t i = 0; i < m_document.outputs().size(); ++i) {
      DocumentOutput output = m_document.outputs()[i];
      if (!isChosen(output.from.node)) continue;
      output.from = {m_instance, m_outputOf[output.from]};
      m_edits.push_back(RemoveOutput{output.id, static_cast<int>(i)});
      m_edits.push_back(AddOutput{output, static_cast<int>(i)});
    }
  }

  void replaceOps() {
    std::vector<std::size_t> places = m_order;
    std::ranges::sort(places, std::greater<>());
    for (const std::size_t index : places) m_edits.push_back(RemoveOp{op(index).id, static_cast<int>(index)});
    m_edits.push_back(AddOp{{.id = m_instance, .operation = instanceOf(m_name)}, static_cast<int>(places.back())});
  }

  void replacePositions() {
    for (const std::size_t index : m_order)
      if (positionOf(m_document.pipeline(), op(index).id)) m_edits.push_back(MoveNode{op(index).id, std::nullopt});
    if (m_origin) m_edits.push_back(MoveNode{m_instance, m_origin});
    const auto& frames = m_document.frames();
    for (std::size_t i = frames.size(); i-- > 0;)
      if (goesInside(frames[i])) m_edits.push_back(RemoveFrame{frames[i].id, static_cast<int>(i)});
  }

  PlaceMoves moves() const {
    std::map<std::string, std::string> places;
    for (const std::string& id : m_ids) places.emplace(id, m_instance + "." + id);
    return movesOf(std::move(places));
  }

  const PipelineDocument& m_document;
  const std::set<std::string> m_ids;
  const std::string m_name;
  std::string m_instance;
  std::vector<std::size_t> m_order;  // of the chosen ops in the document, along the wires
  DocumentBlock m_block;
  std::unordered_set<std::string> m_taken;     // ids in the block
  std::map<Endpoint, std::string> m_inputOf;   // by source outside
  std::map<Endpoint, std::string> m_outputOf;  // by source inside
  std::optional<Position> m_origin;
  std::vector<Edit> m_edits;
};

class BlockExpander {
 public:
  BlockExpander(const PipelineDocument& document, const DocumentBlock& block, std::size_t instance)
      : m_document(document), m_block(block), m_index(instance), m_instance(document.ops()[instance].id) {}

  ExpandedBlock expand() {
    nameOps();
    replaceWires();
    replaceOutputs();
    replaceOps();
    replacePositions();
    PlaceMoves moved = moves();
    addMovedPlaces(m_edits, m_document, moved);
    return {EditGroup{.label = "Expand " + m_instance, .edits = std::move(m_edits)}, std::move(m_newIds),
            std::move(moved)};
  }

 private:
  void nameOps() {
    std::unordered_set<std::string> taken = idsOf(m_document.pipeline());
    taken.erase(m_instance);
    for (const DocumentOp& op : m_block.ops) {
      m_newIds.push_back(freeId(taken, op.id));
      taken.insert(m_newIds.back());
      m_idOf.emplace(op.id, m_newIds.back());
    }
    for (const Wire& wire : m_document.wires())
      if (wire.to.node == m_instance) m_feeds.emplace(wire.to.port, wire.from);
  }

  // Outside endpoint of an endpoint inside the block; nullopt for an unconnected input.
  std::optional<Endpoint> outside(const Endpoint& inside) const {
    if (const auto op = m_idOf.find(inside.node); op != m_idOf.end()) return Endpoint{op->second, inside.port};
    const auto feed = m_feeds.find(inside.node);
    return feed == m_feeds.end() ? std::nullopt : std::optional(feed->second);
  }

  std::optional<Endpoint> outputSource(const std::string& port) const {
    const auto output = std::ranges::find(m_block.outputs, port, &DocumentOutput::id);
    return output == m_block.outputs.end() ? std::nullopt : outside(output->from);
  }

  void replaceWires() {
    const auto& wires = m_document.wires();
    auto place = static_cast<int>(wires.size());
    for (std::size_t i = wires.size(); i-- > 0;) {
      const Wire& wire = wires[i];
      if (wire.from.node != m_instance && wire.to.node != m_instance) continue;
      const auto index = static_cast<int>(i);
      m_edits.push_back(RemoveWire{wire, index});
      place = index;
      if (const auto source = wire.to.node == m_instance ? std::nullopt : outputSource(wire.from.port))
        m_edits.push_back(AddWire{{*source, wire.to}, index});
    }
    for (const Wire& wire : m_block.wires) {
      const auto from = outside(wire.from);
      const auto to = m_idOf.find(wire.to.node);
      if (from && to != m_idOf.end()) m_edits.push_back(AddWire{{*from, {to->second, wire.to.port}}, place++});
    }
  }

  void replaceOutputs() {
    for (std::size_t i = 0; i < m_document.outputs().size(); ++i) {
      DocumentOutput output = m_document.outputs()[i];
      if (output.from.node != m_instance) continue;
      output.from = outputSource(output.from.port).value_or(Endpoint());
      m_edits.push_back(RemoveOutput{output.id, static_cast<int>(i)});
      m_edits.push_back(AddOutput{output, static_cast<int>(i)});
    }
  }

  void replaceOps() {
    m_edits.push_back(RemoveOp{m_instance, static_cast<int>(m_index)});
    for (std::size_t i = 0; i < m_block.ops.size(); ++i) {
      DocumentOp op = m_block.ops[i];
      op.id = m_newIds[i];
      m_edits.push_back(AddOp{std::move(op), static_cast<int>(m_index + i)});
    }
  }

  void replacePositions() {
    const auto origin = positionOf(m_document.pipeline(), m_instance);
    m_edits.push_back(MoveNode{m_instance, std::nullopt});
    if (!origin) return;
    for (const auto& [id, position] : m_block.positions)
      if (const auto op = m_idOf.find(id); op != m_idOf.end())
        if (const auto outside = shifted(position, origin->x, origin->y))
          m_edits.push_back(MoveNode{op->second, outside});
    std::unordered_set<std::string> taken;
    for (const DocumentFrame& frame : m_document.frames()) taken.insert(frame.id);
    for (const DocumentFrame& frame : m_block.frames) {
      if (!frame.area || frame.id.empty()) continue;
      std::optional<DocumentFrame> copy = shifted(frame, origin->x, origin->y);
      if (!copy) continue;
      copy->id = freeId(taken, frame.id);
      taken.insert(copy->id);
      m_edits.push_back(AddFrame{std::move(*copy)});
    }
  }

  /// Settings of the instance move to its ops; overrides of the recipe only to ops that may have a GEMM.
  PlaceMoves moves() const {
    const auto moved = [instance = m_instance, inside = movesOf(m_idOf).ofRecipe](auto ofInstance) -> MovedPlaces {
      return [=](const std::string& place) -> std::optional<std::vector<std::string>> {
        if (place == instance) return ofInstance;
        return place.starts_with(instance + ".") ? inside(place.substr(instance.size() + 1)) : std::nullopt;
      };
    };
    return {moved(linears()), moved(m_newIds)};
  }

  /// By itself, or inside where it is an instance.
  bool mayMultiply(const DocumentOp& op) const {
    const auto multiplies = [&](const DocumentOp& each) {
      const auto type = blockNameOf(each).empty() ? operationOf(m_document, each) : nullptr;
      return type && (type->isComposite() || type->isQuantizable);
    };
    const std::vector<std::string> blocks = blocksUsedBy(m_document, std::span(&op, 1));
    return multiplies(op) || std::ranges::any_of(blocks, [&](const std::string& name) {
             const DocumentBlock* inside = m_document.findBlock(name);
             return inside && std::ranges::any_of(inside->ops, multiplies);
           });
  }

  /// Nothing: the override stays where it was, and is reported.
  std::optional<std::vector<std::string>> linears() const {
    std::vector<std::string> ids;
    for (const DocumentOp& op : m_block.ops)
      if (mayMultiply(op)) ids.push_back(m_idOf.at(op.id));
    return ids.empty() ? std::nullopt : std::optional(std::move(ids));
  }

  const PipelineDocument& m_document;
  const DocumentBlock& m_block;
  const std::size_t m_index;
  const std::string m_instance;
  std::vector<std::string> m_newIds;                  // by op of the block
  std::map<std::string, std::string> m_idOf;          // by id in the block
  std::unordered_map<std::string, Endpoint> m_feeds;  // by port of the instance
  std::vector<Edit> m_edits;
};

}  // namespace

Result<NewBlock> makeBlock(const PipelineDocument& document, std::span<const std::string> ids,
                           const std::string& name) {
  return BlockMaker(document, ids, name).make();
}

Result<ExpandedBlock> expandBlock(const PipelineDocument& document, std::string_view instance) {
  const auto op = std::ranges::find(document.ops(), instance, &DocumentOp::id);
  if (op == document.ops().end()) return Error{fmt::format("There is no op {}.", instance)};
  const std::string_view name = blockNameOf(*op);
  if (name.empty()) return Error{fmt::format("{} is a {}, not an instance of a block.", instance, op->operation)};
  if (op->isBypassed())
    return Error{fmt::format("{} is bypassed. Re-enable {} before you expand it.", instance, instance)};
  const DocumentBlock* block = document.findBlock(name);
  if (!block)
    return Error{fmt::format("{} is an instance of block {}, which this pipeline does not have.", instance, name)};
  return BlockExpander(document, *block, static_cast<std::size_t>(op - document.ops().begin())).expand();
}

std::vector<std::string> blocksUsedBy(const PipelineDocument& document, std::span<const DocumentOp> ops) {
  std::set<std::string_view> used;
  std::vector<std::span<const DocumentOp>> open = {ops};
  while (!open.empty()) {
    const std::span<const DocumentOp> next = open.back();
    open.pop_back();
    for (const DocumentOp& op : next) {
      const std::string_view name = blockNameOf(op);
      const DocumentBlock* block = name.empty() ? nullptr : document.findBlock(name);
      if (block && used.insert(name).second) open.push_back(block->ops);
    }
  }
  std::vector<std::string> names;
  for (const auto& [name, block] : document.blocks())
    if (used.contains(name)) names.push_back(name);
  return names;
}

namespace {

/// Blocks in blocks in blocks soon are more than can be counted.
constexpr std::ptrdiff_t kMostCounted = 1'000'000'000;

/// known: counts so far; also ends the recursion of a block that contains itself.
std::ptrdiff_t instancesInside(const PipelineDocument& document, const DocumentBlock& place, std::string_view block,
                               std::map<const DocumentBlock*, std::ptrdiff_t>& known) {
  if (const auto found = known.find(&place); found != known.end()) return found->second;
  known[&place] = 0;
  std::ptrdiff_t count = 0;
  for (const DocumentOp& op : place.ops) {
    if (blockNameOf(op) == block) ++count;
    if (const DocumentBlock* inside = document.findBlock(blockNameOf(op)))
      count = std::min(count + instancesInside(document, *inside, block, known), kMostCounted);
  }
  return known[&place] = count;
}

}  // namespace

std::ptrdiff_t numInstances(const PipelineDocument& document, std::string_view block) {
  std::map<const DocumentBlock*, std::ptrdiff_t> known;
  return instancesInside(document, document.pipeline(), block, known);
}

}  // namespace fuseline
