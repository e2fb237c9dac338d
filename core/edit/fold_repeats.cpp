// Finds a period in the sequence of ops, and compares the wires of candidate units.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/fold_repeats.h"

#include "core/document/block_operation.h"
#include "core/document/node_id.h"
#include "core/edit/apply_edit.h"
#include "core/edit/block_edits.h"
#include "core/edit/running_order.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

namespace fuseline {

namespace {

using Ids = std::vector<std::string>;

/// Longer rows would take seconds to look through.
constexpr std::size_t kMostOps = 5000;

/// In the order in which they run. Empty: they run in a circle, or an id is not one op's alone.
Ids idsInOrder(const PipelineDocument& document) {
  Ids order;
  std::set<std::string> seen;
  for (const std::size_t op : runningOrder(document.pipeline())) {
    order.push_back(document.ops()[op].id);
    seen.insert(order.back());
  }
  return seen.size() == document.ops().size() ? order : Ids();
}

/// The same number for ops that differ in their ids at most.
std::vector<int> kindsOf(const PipelineDocument& document, const Ids& order) {
  std::unordered_map<std::string, int> numbers;
  std::vector<int> kinds;
  for (const std::string& id : order) {
    const DocumentOp& op = *document.findOp(id);
    const std::string text =
        fmt::format("{} {} {} {}", op.operation, op.attributes.dump(), op.isBypassed(), op.extra.dump());
    kinds.push_back(numbers.emplace(text, static_cast<int>(numbers.size())).first->second);
  }
  return kinds;
}

/// Ops [begin, end) of a row, in which each op is of the kind of the one a period before, if that is in it.
struct Row {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t period = 0;
  std::size_t numUnits() const { return (end - begin) / period; }
};

/// The most ops in whole units first, and of equally many the shortest units.
std::vector<Row> rowsIn(const std::vector<int>& kinds) {
  std::vector<Row> rows;
  for (std::size_t period = kFewestRepeatedOps; 2 * period <= kinds.size(); ++period)
    for (std::size_t begin = 0; begin + period < kinds.size();) {
      std::size_t last = begin;
      while (last + period < kinds.size() && kinds[last] == kinds[last + period]) ++last;
      if (const Row row{begin, last + period, period}; row.numUnits() > 1) rows.push_back(row);
      begin = last + 1;
    }
  const auto rank = [](const Row& row) {
    return std::pair(-static_cast<std::int64_t>(row.numUnits() * row.period), row.period);
  };
  std::ranges::stable_sort(rows, {}, rank);
  return rows;
}

class Wiring {
 public:
  explicit Wiring(const PipelineDocument& document) {
    for (const Wire& wire : document.wires()) {
      m_sources.emplace(wire.to, wire.from);
      m_wires[wire.from.node].push_back(wire);
      m_wires[wire.to.node].push_back(wire);
    }
    for (const DocumentOutput& output : document.outputs()) m_outputs.insert(output.from);
  }

  const Endpoint* source(const Endpoint& port) const {
    const auto found = m_sources.find(port);
    return found == m_sources.end() ? nullptr : &found->second;
  }

  std::size_t numInto(const std::set<std::string>& unit) const {
    std::size_t count = 0;
    for (const std::string& id : unit)
      count += static_cast<std::size_t>(
          std::ranges::count_if(wiresOf(id), [&](const Wire& wire) { return wire.to.node == id; }));
    return count;
  }

  std::set<Endpoint> readOutside(const std::set<std::string>& unit) const {
    std::set<Endpoint> read;
    for (const std::string& id : unit)
      for (const Wire& wire : wiresOf(id))
        if (unit.contains(wire.from.node) && !unit.contains(wire.to.node)) read.insert(wire.from);
    for (const Endpoint& output : m_outputs)
      if (unit.contains(output.node)) read.insert(output);
    return read;
  }

  /// From an op, or to it.
  const std::vector<Wire>& wiresOf(const std::string& id) const {
    static const std::vector<Wire> kNone;
    const auto found = m_wires.find(id);
    return found == m_wires.end() ? kNone : found->second;
  }

 private:
  std::map<Endpoint, Endpoint> m_sources;
  std::unordered_map<std::string, std::vector<Wire>> m_wires;
  std::set<Endpoint> m_outputs;
};

/// A unit as an instance of the block that the first one became.
struct Instance {
  std::map<std::string, std::string> opOf;   // by the id of the op in the block that it is
  std::map<std::string, Endpoint> feeds;     // by input of the block
  std::map<Endpoint, std::string> outputOf;  // by endpoint used outside
};

Ids unitOf(const Ids& order, const Row& row, std::size_t unit) {
  const auto begin = order.begin() + static_cast<std::ptrdiff_t>(row.begin + unit * row.period);
  return {begin, begin + static_cast<std::ptrdiff_t>(row.period)};
}

class Folding {
 public:
  /// wiring: the document's.
  Folding(const PipelineDocument& document, const Wiring& wiring, std::string name)
      : m_wiring(wiring), m_document(document), m_name(std::move(name)) {}

  /// As many units as are the same. Nothing: not even the first two are.
  std::optional<FoldedRepeats> fold(const Ids& order, const Row& row) {
    for (std::size_t unit = 0; unit < row.numUnits(); ++unit) m_units.push_back(unitOf(order, row, unit));
    if (areNamedOneByOne() || !makeFirst()) return std::nullopt;
    std::size_t numSame = 1;
    while (numSame < m_units.size() && replace(m_units[numSame])) ++numSame;
    if (numSame < 2) return std::nullopt;
    m_units.resize(numSame);
    shortenIds();
    return FoldedRepeats{.edit = EditGroup{.label = fmt::format("Fold {} times {}", m_units.size(), m_name),
                                           .edits = std::move(m_edits)},
                         .block = m_name,
                         .numInstances = static_cast<int>(m_units.size()),
                         .places = std::move(m_places)};
  }

 private:
  bool apply(Edit edit) {
    const bool isApplied = static_cast<bool>(applyEdit(m_document, edit));
    if (isApplied) m_edits.push_back(std::move(edit));
    return isApplied;
  }

  /// "RULE@fc7" would be of all instances, or of none.
  bool areNamedOneByOne() const {
    std::set<std::string> ids;
    for (const Ids& unit : m_units) ids.insert(unit.begin(), unit.end());
    return names(m_document.fusion(), ids) || names(m_document.recipe(), ids);
  }

  static bool names(const Json& json, const std::set<std::string>& ids) {
    if (json.is_string()) {
      const auto& text = json.get_ref<const std::string&>();
      const std::string name = text.substr(text.find('@') == std::string::npos ? 0 : text.find('@') + 1);
      return ids.contains(name.substr(0, name.find('.')));
    }
    if (json.is_object())
      for (const auto& [key, value] : json.items())
        if (ids.contains(key.substr(0, key.find('.')))) return true;
    return (json.is_object() || json.is_array()) &&
           std::ranges::any_of(json, [&](const Json& each) { return names(each, ids); });
  }

  bool makeFirst() {
    Result<NewBlock> made = makeBlock(m_document, m_units.front(), m_name);
    if (!made || !apply(std::move(made->edit))) return false;
    for (const std::string& id : m_units.front()) m_places.emplace(id, made->instance + "." + id);
    for (const DocumentOutput& output : block().outputs) m_moved[output.from] = {made->instance, output.id};
    return true;
  }

  const DocumentBlock& block() const { return *m_document.findBlock(m_name); }

  bool replace(const Ids& unit) {
    std::optional<Instance> instance = compared(unit);
    if (!instance) return false;
    std::string id = m_document.freeId(instanceStem());
    if (!apply(EditGroup{.label = "", .edits = edits(unit, *instance, id)})) return false;
    for (const auto& [inner, op] : instance->opOf) m_places.emplace(op, id + "." + inner);
    for (const auto& [made, output] : instance->outputOf) m_moved[made] = {id, output};
    return true;
  }

  /// Current source of an output of the initial document.
  const Endpoint& now(const Endpoint& made) const {
    const auto moved = m_moved.find(made);
    return moved == m_moved.end() ? made : moved->second;
  }

  std::string instanceStem() const {
    const std::string& first = m_places.at(m_units.front().front());
    return first.substr(0, first.find('.'));
  }

  std::optional<Instance> compared(const Ids& unit) const {
    Instance instance;
    for (std::size_t i = 0; i < unit.size(); ++i) instance.opOf.emplace(m_units.front()[i], unit[i]);
    const std::set<std::string> ids(unit.begin(), unit.end());
    if (!findFeeds(ids, instance)) return std::nullopt;
    for (const DocumentOutput& output : block().outputs)
      instance.outputOf.emplace(Endpoint{instance.opOf.at(output.from.node), output.from.port}, output.id);
    for (const Endpoint& read : m_wiring.readOutside(ids))
      if (!instance.outputOf.contains(read)) return std::nullopt;
    return instance;
  }

  /// Each port must have the same source as in the block.
  bool findFeeds(const std::set<std::string>& unit, Instance& instance) const {
    std::map<std::string, const Endpoint*> sources;
    std::size_t numFed = 0;
    for (const Wire& wire : block().wires) {
      const Endpoint* const source = m_wiring.source({instance.opOf.at(wire.to.node), wire.to.port});
      numFed += source ? 1 : 0;
      if (const auto maker = instance.opOf.find(wire.from.node); maker != instance.opOf.end()) {
        if (!source || *source != Endpoint{maker->second, wire.from.port}) return false;
        continue;
      }
      const auto [known, isNew] = sources.emplace(wire.from.node, source);
      const bool isSame = isNew || (source && known->second ? *source == *known->second : source == known->second);
      if (!isSame || (source && unit.contains(source->node))) return false;
    }
    for (const auto& [input, source] : sources)
      if (source) instance.feeds.emplace(input, *source);
    return numFed == m_wiring.numInto(unit);
  }

  std::vector<Edit> edits(const Ids& unit, const Instance& instance, const std::string& id) const {
    const std::set<std::string> ids(unit.begin(), unit.end());
    std::vector<Edit> edits;
    std::vector<Edit> added;
    for (const std::string& op : unit)
      for (const Wire& wire : m_wiring.wiresOf(op)) {
        const bool isFromInside = ids.contains(wire.from.node);
        if (isFromInside && wire.from.node != op) continue;  // it is among the wires of the op that it comes from
        edits.emplace_back(RemoveWire{{now(wire.from), wire.to}});
        if (isFromInside && !ids.contains(wire.to.node))
          added.emplace_back(AddWire{{{id, instance.outputOf.at(wire.from)}, wire.to}});
      }
    for (const auto& [input, source] : instance.feeds) added.emplace_back(AddWire{{now(source), {id, input}}});
    for (DocumentOutput output : m_document.outputs())
      if (ids.contains(output.from.node)) {
        output.from = {id, instance.outputOf.at(output.from)};
        added.emplace_back(ReplaceOutput{output.id, output});
      }
    replaceOps(ids, id, edits);
    edits.insert(edits.end(), added.begin(), added.end());
    return edits;
  }

  void replaceOps(const std::set<std::string>& ids, const std::string& id, std::vector<Edit>& edits) const {
    std::optional<Position> position;
    for (const auto& [op, place] : m_document.positions()) {
      if (!ids.contains(op)) continue;
      if (!position) position = place;
      edits.emplace_back(MoveNode{op, std::nullopt});
    }
    int first = 0;
    for (std::size_t i = m_document.ops().size(); i-- > 0;)
      if (const std::string& op = m_document.ops()[i].id; ids.contains(op)) {
        first = static_cast<int>(i);
        edits.emplace_back(RemoveOp{op, first});
      }
    edits.emplace_back(AddOp{{.id = id, .operation = instanceOf(m_name)}, first});
    if (position) edits.emplace_back(MoveNode{id, position});
  }

  // ---- ids

  /// "layers_0_attn_q" is "attn_q" where all in the block begin with "layers_0_".
  void shortenIds() {
    const std::string common = commonStart();
    std::vector<Edit> renames;
    std::map<std::string, std::string> newIds;
    for (const DocumentOp& op : block().ops)
      if (!common.empty() && op.id.starts_with(common) && isFree(op.id.substr(common.size()))) {
        newIds.emplace(op.id, op.id.substr(common.size()));
        renames.emplace_back(RenameOp{op.id, newIds.at(op.id)});
      }
    if (renames.empty() || !apply(EditInBlock{m_name, std::move(renames)})) return;
    for (auto& [op, place] : m_places) {
      const std::size_t dot = place.find('.') + 1;
      if (const auto renamed = newIds.find(place.substr(dot)); renamed != newIds.end())
        place = place.substr(0, dot) + renamed->second;
    }
  }

  bool isFree(const std::string& id) const { return checkId(id) && freeId(block(), id) == id; }

  /// Common prefix of ids of several parts, up to a '_'. The ids of a single part do not show their origin.
  std::string commonStart() const {
    std::optional<std::string> common;
    for (const DocumentOp& op : block().ops) {
      if (op.id.find('_') == std::string::npos) continue;
      if (!common) common = op.id;
      common->erase(std::ranges::mismatch(*common, op.id).in1, common->end());
    }
    return common ? common->substr(0, common->rfind('_') + 1) : "";
  }

  const Wiring& m_wiring;       // before the first edit
  PipelineDocument m_document;  // as it is after the edits so far
  std::string m_name;
  std::vector<Ids> m_units;
  std::vector<Edit> m_edits;
  std::map<std::string, std::string> m_places;
  std::map<Endpoint, Endpoint> m_moved;  // current source by former output
};

std::string freeBlockName(const PipelineDocument& document, const std::string& stem) {
  std::unordered_set<std::string> taken;
  for (const auto& [name, block] : document.blocks()) taken.insert(name);
  return freeId(taken, stem);
}

/// Number of tensors produced before each place in the order and consumed after it.
std::vector<int> tensorsAcross(const PipelineDocument& document, const Ids& order) {
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < order.size(); ++i) places.emplace(order[i], i);
  std::map<Endpoint, std::size_t> lastReaders;
  for (const Wire& wire : document.wires())
    if (const auto reader = places.find(wire.to.node); reader != places.end()) {
      std::size_t& last = lastReaders[wire.from];
      last = std::max(last, reader->second);
    }
  for (const DocumentOutput& output : document.outputs()) lastReaders[output.from] = order.size();
  std::vector<int> across(order.size() + 2, 0);
  for (const auto& [made, last] : lastReaders) {
    const auto maker = places.find(made.node);
    ++across[maker == places.end() ? 0 : std::min(maker->second, last) + 1];
    --across[last + 1];
  }
  std::partial_sum(across.begin(), across.end(), across.begin());
  return across;
}

/// The same row beginning later, also without its first unit: first where the fewest tensors go from unit to unit, then
/// where the most units are, and of those where the row itself has its borders.
std::vector<Row> beginningsOf(const Row& row, const std::vector<int>& across) {
  std::vector<Row> rows;
  for (Row later = row; later.begin < row.begin + 2 * row.period && later.numUnits() > 1; ++later.begin)
    rows.push_back(later);
  const auto rank = [&](const Row& each) {
    return std::tuple(across[each.begin + each.period], row.numUnits() - each.numUnits(),
                      (each.begin - row.begin) % each.period);
  };
  std::ranges::stable_sort(rows, {}, rank);
  return rows;
}

}  // namespace

std::optional<FoldedRepeats> foldRepeats(const PipelineDocument& document, const std::string& name) {
  constexpr std::size_t kMostRows = 8, kMostBeginnings = 4;
  if (document.ops().size() > kMostOps) return std::nullopt;
  const Ids order = idsInOrder(document);
  const Wiring wiring(document);
  const std::vector<int> across = tensorsAcross(document, order);
  std::vector<Row> rows = rowsIn(kindsOf(document, order));
  rows.resize(std::min(rows.size(), kMostRows));
  for (const Row& row : rows) {
    std::vector<Row> beginnings = beginningsOf(row, across);
    beginnings.resize(std::min(beginnings.size(), kMostBeginnings));
    for (const Row& each : beginnings)
      if (auto folded = Folding(document, wiring, freeBlockName(document, name)).fold(order, each)) return folded;
  }
  return std::nullopt;
}

}  // namespace fuseline
