// Builds the edits that revert a change. Each is tried out on a copy, so that the parts of a group fit together.
// SPDX-License-Identifier: Apache-2.0
#include "core/compare/take_back.h"

#include "core/edit/apply_edit.h"
#include "core/edit/block_edits.h"
#include "core/edit/renaming.h"
#include "core/lowering/document_operation.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

template <class Item>
const Item* itemOf(const std::vector<Item>& list, std::string_view id) {
  const auto found = std::ranges::find(list, id, &Item::id);
  return found == list.end() ? nullptr : &*found;
}

template <class Item>
int indexOf(const std::vector<Item>& list, std::string_view id) {
  return static_cast<int>(std::ranges::find(list, id, &Item::id) - list.begin());
}

/// Position in one list of an item of another list: after its nearest predecessor that exists, or first.
template <class Then, class Now, class Same>
int placeBehind(const Then& then, std::size_t index, const Now& now, Same isSame) {
  while (index-- > 0) {
    const auto found =
        std::find_if(now.begin(), now.end(), [&](const auto& item) { return isSame(then[index], item); });
    if (found != now.end()) return static_cast<int>(found - now.begin()) + 1;
  }
  return 0;
}

std::vector<std::string> memberNames(const Json& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items()) names.push_back(name);
  return names;
}

template <class Item>
std::ptrdiff_t countOfId(const std::vector<Item>& list, std::string_view id) {
  return std::ranges::count(list, id, &Item::id);
}

bool isAmbiguous(const DocumentBlock& block, std::string_view id) {
  return countOfId(block.inputs, id) + countOfId(block.ops, id) + countOfId(block.outputs, id) > 1;
}

bool isTensorSource(const DocumentBlock& block, std::string_view id) {
  return itemOf(block.inputs, id) || itemOf(block.ops, id);
}

/// Sorts as in another list; items that the other list does not have stay at the end.
template <class Item>
void sortAs(std::vector<Item>& list, const std::vector<Item>& order,
            const std::map<std::string, std::string>& renames) {
  const auto rankOf = [&](const Item& item) {
    const auto isIt = [&](const Item& other) {
      const auto renamed = renames.find(other.id);
      return (renamed == renames.end() ? other.id : renamed->second) == item.id;
    };
    return std::ranges::find_if(order, isIt) - order.begin();
  };
  std::ranges::stable_sort(list, {}, rankOf);
}

/// Fields of the block itself; its view has separate fields.
void takeUnknownFields(DocumentBlock& block, const DocumentBlock& base) {
  block.extra.erase("");
  if (const auto fields = base.extra.find(""); fields != base.extra.end()) block.extra[""] = fields->second;
}

/// Edits of the pipeline, or of one block, in a copy of the document.
class Restoration {
 public:
  Restoration(const PipelineDocument& base, const PipelineDocument& next, std::span<const DocumentChange> changes,
              const DocumentChange& change)
      : m_base(base),
        m_scratch(next),
        m_changes(changes),
        m_change(change),
        m_renames(renamedIds(changes, change.block)) {}

  Result<Edit> run() && {
    if (!m_change.block.empty() && (!m_base.findBlock(m_change.block) || !m_scratch.findBlock(m_change.block)))
      refuse(fmt::format("Block {} cannot be edited.", m_change.block));
    else
      takeSection();
    if (m_problem) return *m_problem;
    if (m_edits.empty()) return Error{"Nothing to revert: the pipelines no longer differ here."};
    return Edit(EditGroup{.label = fmt::format("Revert: {} {}", fuseline::placeOf(m_change), kindName(m_change.kind)),
                          .edits = std::move(m_edits)});
  }

 private:
  using Section = DocumentChange::Section;
  using Kind = DocumentChange::Kind;

  const DocumentBlock& then() const {
    return m_change.block.empty() ? m_base.pipeline() : *m_base.findBlock(m_change.block);
  }
  const DocumentBlock& now() const {
    return m_change.block.empty() ? m_scratch.pipeline() : *m_scratch.findBlock(m_change.block);
  }

  void refuse(std::string sentence) {
    if (!m_problem) m_problem = Error{std::move(sentence)};
  }

  void addOutside(Edit edit) {
    if (m_problem) return;
    if (const Result<Edit> applied = applyEdit(m_scratch, edit); !applied)
      m_problem = applied.error();
    else
      m_edits.push_back(std::move(edit));
  }

  void add(Edit edit) {
    addOutside(m_change.block.empty() ? std::move(edit) : Edit(EditInBlock{m_change.block, {std::move(edit)}}));
  }

  void takeSection() {
    switch (m_change.section) {
      case Section::Symbols: return takeSymbol();
      case Section::Inputs:
      case Section::Ops: return takeNode();
      case Section::Wires: return takeWire();
      case Section::Outputs: return takeOutput();
      case Section::Blocks: return takeBlock();
      case Section::Recipe: return addOutside(SetRecipe{m_base.recipe()});
      case Section::Fusion: return addOutside(SetFusion{m_base.fusion()});
      case Section::View: return refuse("Layout changes cannot be reverted here.");
      case Section::File: return refuse("This version does not know these fields, so it cannot edit them.");
    }
  }

  // ---- Beside the pipeline.

  void takeSymbol() {
    const std::string& name = m_change.id;
    if (m_change.kind == Kind::Added) return addOutside(SetSymbol{name, nullptr});
    const Json& symbols = m_base.symbols();
    if (!symbols.contains(name) || symbols[name].is_null())
      return refuse(fmt::format("The symbol {} has no value in the base.", name));
    const std::vector<std::string> names = memberNames(symbols);
    const auto index = static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
    addOutside(
        SetSymbol{name, symbols[name], placeBehind(names, index, memberNames(m_scratch.symbols()), std::equal_to<>())});
  }

  void takeBlock() {
    const std::string& name = m_change.id;
    if (m_change.kind == Kind::Added) return addOutside(RemoveBlock{name});
    if (!m_base.findBlock(name)) return refuse(fmt::format("Block {} of the base cannot be read.", name));
    if (m_change.kind == Kind::Removed) return putBackBlock(name);
    if (!m_scratch.findBlock(name)) return refuse(fmt::format("Block {} cannot be edited.", name));
    DocumentBlock block = *m_scratch.findBlock(name);
    const DocumentBlock& base = *m_base.findBlock(name);
    const std::map<std::string, std::string> renames = renamedIds(m_changes, name);
    sortAs(block.inputs, base.inputs, renames);
    sortAs(block.outputs, base.outputs, renames);
    takeUnknownFields(block, base);
    addOutside(ReplaceBlock{name, std::move(block)});
  }

  void putBackBlock(const std::string& name) {
    const auto& blocks = m_base.blocks();
    const auto found = std::ranges::find_if(blocks, [&](const auto& entry) { return entry.first == name; });
    const auto sameName = [](const auto& a, const auto& b) { return a.first == b.first; };
    const int place =
        placeBehind(blocks, static_cast<std::size_t>(found - blocks.begin()), m_scratch.blocks(), sameName);
    addOutside(AddBlock{name, found->second, place});
  }

  // ---- Ops and inputs.

  void takeNode() {
    if (isAmbiguous(then(), m_change.id) || isAmbiguous(now(), currentId()))
      return refuse(fmt::format("Several nodes have the id {}. Rename one of them first.", m_change.id));
    switch (m_change.kind) {
      case Kind::Added: return removeNode(m_change.id);
      case Kind::Removed: return putBackNode(m_change.id);
      case Kind::Renamed: return renameBack();
      case Kind::Changed: return changeBack();
    }
  }

  const std::string& currentId() const { return m_change.kind == Kind::Renamed ? m_change.newId : m_change.id; }

  void renameBack() {
    const std::string& block = m_change.block;
    addOutside(block.empty() ? renameNode(m_scratch, m_change.newId, m_change.id)
                             : renameInBlock(m_scratch, block, m_change.newId, m_change.id));
    const DocumentInput* input = itemOf(then().inputs, m_change.id);
    if (m_change.section == Section::Inputs && input) add(ReplaceInput{m_change.id, *input});
  }

  void changeBack() {
    const DocumentInput* input = itemOf(then().inputs, m_change.id);
    const DocumentOp* op = itemOf(then().ops, m_change.id);
    if (m_change.section == Section::Inputs && input) return add(ReplaceInput{m_change.id, *input});
    if (!op || !itemOf(now().ops, m_change.id)) return;
    putBackBlocksOf(*op);
    const int index = indexOf(now().ops, m_change.id);
    add(RemoveOp{m_change.id, index});
    add(AddOp{*op, index});
  }

  void removeNode(const std::string& id) {
    std::vector<Endpoint> readers;
    for (int i = static_cast<int>(now().wires.size()) - 1; i >= 0; --i) {
      const Wire wire = now().wires[static_cast<std::size_t>(i)];
      if (wire.from.node != id && wire.to.node != id) continue;
      if (wire.to.node != id) readers.push_back(wire.to);
      add(RemoveWire{wire, i});
    }
    freeOutputsOf(id);
    add(MoveNode{id, std::nullopt});
    if (m_change.section == Section::Inputs)
      add(RemoveInput{id, indexOf(now().inputs, id)});
    else
      add(RemoveOp{id, indexOf(now().ops, id)});
    for (const Endpoint& reader : readers) putBackWiresInto(reader);
  }

  /// Outputs that read the node read their former source again, or nothing; outputs as new as the node are removed with
  /// it.
  void freeOutputsOf(const std::string& id) {
    const std::vector<DocumentOutput> outputs = now().outputs;
    for (const DocumentOutput& output : outputs) {
      if (output.from.node != id) continue;
      const DocumentOutput* before = itemOf(then().outputs, output.id);
      if (!before) {
        removeOutput(output.id);
        continue;
      }
      DocumentOutput changed = output;
      const Endpoint from = nowOf(before->from);
      changed.from = from.node != id && isThere(before->from) ? from : Endpoint();
      add(ReplaceOutput{output.id, std::move(changed)});
    }
  }

  void putBackNode(const std::string& id) {
    if (!isFree(id)) return;
    if (m_change.section == Section::Ops) putBackOp(id);
    if (m_change.section == Section::Inputs) putBackInput(id);
    putBackPosition(id);
    for (const Wire& wire : then().wires)
      if (wire.to.node == id || (wire.from.node == id && isTensorSource(now(), nowOf(wire.to).node)))
        putBackWiresInto(nowOf(wire.to));
    for (const DocumentOutput& output : then().outputs)
      if (output.from.node == id) putBackReader(output);
  }

  void putBackOp(const std::string& id) {
    const auto index = static_cast<std::size_t>(indexOf(then().ops, id));
    const DocumentOp& op = then().ops[index];
    putBackBlocksOf(op);
    add(AddOp{op, placeInList(then().ops, index, now().ops)});
  }

  void putBackInput(const std::string& id) {
    const auto index = static_cast<std::size_t>(indexOf(then().inputs, id));
    add(AddInput{then().inputs[index], placeInList(then().inputs, index, now().inputs)});
  }

  /// An instance needs its block, and the blocks used in that block.
  void putBackBlocksOf(const DocumentOp& op) {
    for (const std::string& name : blocksUsedBy(m_base, std::span(&op, 1)))
      if (!m_scratch.findBlock(name)) putBackBlock(name);
  }

  void putBackPosition(const std::string& id) {
    const auto& positions = then().positions;
    const auto found = std::ranges::find_if(positions, [&](const auto& entry) { return entry.first == id; });
    if (found == positions.end()) return;
    const auto sameNode = [&](const auto& a, const auto& b) { return nowOf(Endpoint{a.first, {}}).node == b.first; };
    add(MoveNode{
        id, found->second,
        placeBehind(positions, static_cast<std::size_t>(found - positions.begin()), now().positions, sameNode)});
  }

  // ---- Wires.

  void takeWire() {
    const Endpoint to = parseEndpoint(m_change.id);
    if (!isTensorSource(now(), to.node) && m_change.kind != Kind::Added)
      return refuse(fmt::format("{} has been removed. Restore it first.", to.node));
    for (const Wire& wire : then().wires)
      if (nowOf(wire.to) == to && !isThere(wire.from))
        return refuse(fmt::format("{0} was an input of {1} and has been removed. Restore {0} first.", wire.from.node,
                                  m_change.id));
    putBackWiresInto(to);
  }

  /// Restores all of the base's wires that end at this port; wires with missing sources stay removed.
  void putBackWiresInto(const Endpoint& to) {
    for (int i = static_cast<int>(now().wires.size()) - 1; i >= 0; --i)
      if (const Wire wire = now().wires[static_cast<std::size_t>(i)]; wire.to == to) add(RemoveWire{wire, i});
    const auto sameEnd = [&](const Wire& a, const Wire& b) { return nowOf(a.to) == b.to; };
    for (std::size_t i = 0; i < then().wires.size(); ++i) {
      const Wire& wire = then().wires[i];
      if (nowOf(wire.to) == to && isThere(wire.from))
        add(AddWire{{nowOf(wire.from), to}, placeBehind(then().wires, i, now().wires, sameEnd)});
    }
  }

  // ---- Outputs.

  void takeOutput() {
    if (isAmbiguous(then(), m_change.id) || isAmbiguous(now(), m_change.id))
      return refuse(fmt::format("Several nodes have the id {}. Rename one of them first.", m_change.id));
    if (m_change.kind == Kind::Added) return removeOutput(m_change.id);
    const DocumentOutput* output = itemOf(then().outputs, m_change.id);
    if (!output) return;
    if (!output->from.node.empty() && !isThere(output->from))
      return refuse(fmt::format("{0} was an input of {1} and has been removed. Restore {0} first.", output->from.node,
                                output->id));
    if (m_change.kind == Kind::Removed) return putBackOutput(*output);
    DocumentOutput changed = *output;
    changed.from = nowOf(output->from);
    add(ReplaceOutput{output->id, std::move(changed)});
  }

  void removeOutput(const std::string& id) {
    add(MoveNode{id, std::nullopt});
    add(RemoveOutput{id, indexOf(now().outputs, id)});
  }

  void putBackOutput(const DocumentOutput& output) {
    if (!isFree(output.id)) return;
    DocumentOutput copy = output;
    copy.from = nowOf(output.from);
    const auto index = static_cast<std::size_t>(indexOf(then().outputs, output.id));
    add(AddOutput{std::move(copy), placeInList(then().outputs, index, now().outputs)});
    putBackPosition(output.id);
  }

  /// An output that is gone, or reads something else, reads the node again.
  void putBackReader(const DocumentOutput& output) {
    if (const DocumentOutput* known = itemOf(now().outputs, output.id)) {
      DocumentOutput changed = *known;
      changed.from = nowOf(output.from);
      return add(ReplaceOutput{output.id, std::move(changed)});
    }
    const bool isTaken = isTensorSource(now(), output.id);
    if (!isTaken) putBackOutput(output);
  }

  // ---- Names.

  std::string nowOf(const std::string& id) const {
    const auto renamed = m_renames.find(id);
    return renamed == m_renames.end() ? id : renamed->second;
  }
  Endpoint nowOf(const Endpoint& endpoint) const { return {nowOf(endpoint.node), endpoint.port}; }

  /// Where an op, an input or an output of the base belongs in the list as it is now.
  template <class Item>
  int placeInList(const std::vector<Item>& before, std::size_t index, const std::vector<Item>& list) const {
    return placeBehind(before, index, list, [this](const Item& a, const Item& b) { return nowOf(a.id) == b.id; });
  }

  /// Does the source of a base wire exist? A wire that had no source in the base may be restored without one.
  bool isThere(const Endpoint& from) const {
    return isTensorSource(now(), nowOf(from.node)) || !isTensorSource(then(), from.node);
  }

  bool isFree(const std::string& id) {
    const bool isTaken = isTensorSource(now(), id) || itemOf(now().outputs, id);
    if (isTaken) refuse(fmt::format("The id {} is now used by another node. Rename or remove that node first.", id));
    return !isTaken;
  }

  const PipelineDocument& m_base;
  PipelineDocument m_scratch;
  const std::span<const DocumentChange> m_changes;
  const DocumentChange& m_change;
  std::map<std::string, std::string> m_renames;
  std::vector<Edit> m_edits;
  std::optional<Error> m_problem;
};

}  // namespace

Result<Edit> takeBack(const PipelineDocument& base, const PipelineDocument& next,
                      std::span<const DocumentChange> changes, const DocumentChange& change) {
  if (next.isReadOnly()) return Error{"The pipeline is open read-only."};
  return Restoration(base, next, changes, change).run();
}

}  // namespace fuseline
