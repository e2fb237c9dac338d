// Edits on the lists of a document; an inverse carries the exact index it needs.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/edit_applier.h"

#include "core/document/block_operation.h"
#include "core/document/format_version.h"
#include "core/document/json_text.h"
#include "core/document/node_id.h"
#include "core/edit/moved_places.h"
#include "core/support/text.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

namespace {

using fuseline::isStorable;

Error notStorable(std::string_view what) {
  return Error{fmt::format(
      "{} contains text that is not UTF-8 or a number that is not finite, which a pipeline file cannot store.", what)};
}

bool isStorable(const Endpoint& endpoint) { return isUtf8(endpoint.node) && isUtf8(endpoint.port); }

bool isStorable(const DocumentOp& op) {
  return isUtf8(op.id) && isUtf8(op.operation) && isStorable(op.attributes) && isStorable(op.extra);
}

bool isStorable(const DocumentInput& input) {
  return isUtf8(input.id) && isUtf8(input.dtype) && isStorable(input.shape) && isStorable(input.extra);
}

bool isStorable(const DocumentOutput& output) {
  return isUtf8(output.id) && isStorable(output.from) && isStorable(output.extra);
}

bool isStorable(const DocumentFrame& frame) {
  const FrameArea area = frame.area.value_or(FrameArea{0, 0, 1, 1});
  return isUtf8(frame.id) && isUtf8(frame.title) && isUtf8(frame.text.value_or("")) && isUtf8(frame.color) &&
         isStorable(frame.extra) && isFrameArea(area.x, area.y, area.width, area.height);
}

Error notDrawable(const DocumentFrame& frame) {
  return Error{fmt::format(
      "The frame {} cannot be stored: its sides must be from 1 to {}, its corner within {}, and its text UTF-8.",
      frame.id, kMaxFrameSide, kMaxFramePlace)};
}

bool isStorable(const Wire& wire) { return isStorable(wire.from) && isStorable(wire.to); }

template <class Item>
bool areStorable(const std::vector<Item>& items) {
  return std::ranges::all_of(items, [](const Item& item) { return isStorable(item); });
}

bool isStorable(const DocumentBlock& block) {
  return areStorable(block.inputs) && areStorable(block.ops) && areStorable(block.wires) &&
         areStorable(block.outputs) && areStorable(block.frames) &&
         std::ranges::all_of(block.positions, [](const auto& entry) { return isUtf8(entry.first); }) &&
         std::ranges::all_of(block.extra, [](const auto& entry) { return isStorable(entry.second); });
}

Error blocksDoNotNest(std::string_view name) {
  return Error{fmt::format("Block {} cannot be edited from inside another block.", name)};
}

Error badIndex(int index, std::size_t size) {
  return Error{fmt::format("Position {} is outside the list of {}.", index, size)};
}

std::optional<std::size_t> insertionPoint(int index, std::size_t size) {
  if (index < 0) return size;
  const auto at = static_cast<std::size_t>(index);
  return at <= size ? std::optional(at) : std::nullopt;
}

template <class List>
auto at(List& list, std::size_t index) {
  return list.begin() + static_cast<std::ptrdiff_t>(index);
}

int findKey(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  return found == object.end() ? -1 : static_cast<int>(std::distance(object.begin(), found));
}

// An ordered object cannot insert in the middle, so it is rebuilt.
Json withMember(const Json& object, const std::string& key, const Json& value, std::size_t index) {
  Json::object_t members;
  members.reserve(object.size() + 1);
  for (const auto& [name, member] : object.items()) {
    if (members.size() == index) members.push_back({key, value});
    members.push_back({name, member});
  }
  if (members.size() == index) members.push_back({key, value});
  return Json(std::move(members));
}

// Sets, inserts or (null) removes a member; returns the value and index that undo it.
struct MemberChange {
  Json oldValue;
  int oldIndex = -1;
};
MemberChange setMember(Json& object, const std::string& key, const Json& value, int index) {
  const int known = findKey(object, key);
  if (known >= 0) {
    MemberChange change{.oldValue = object[key], .oldIndex = known};
    if (value.is_null())
      object.erase(key);
    else
      object[key] = value;
    return change;
  }
  if (!value.is_null())
    object = withMember(object, key, value, insertionPoint(index, object.size()).value_or(object.size()));
  return {};
}

// The edits that turn the wires, outputs and positions of `now` back into those of `then`; lists of equal length.
void restoreReferences(const DocumentBlock& now, const DocumentBlock& then, std::vector<Edit>& edits) {
  for (std::size_t i = 0; i < now.wires.size(); ++i) {
    if (now.wires[i] == then.wires[i]) continue;
    edits.push_back(RemoveWire{now.wires[i], static_cast<int>(i)});
    edits.push_back(AddWire{then.wires[i], static_cast<int>(i)});
  }
  for (std::size_t i = 0; i < now.outputs.size(); ++i) {
    if (now.outputs[i] == then.outputs[i]) continue;
    edits.push_back(RemoveOutput{now.outputs[i].id, static_cast<int>(i)});
    edits.push_back(AddOutput{then.outputs[i], static_cast<int>(i)});
  }
  if (now.positions == then.positions) return;
  for (const auto& [id, position] : now.positions) edits.push_back(MoveNode{id, std::nullopt});
  for (std::size_t i = 0; i < then.positions.size(); ++i)
    edits.push_back(MoveNode{then.positions[i].first, then.positions[i].second, static_cast<int>(i)});
}

}  // namespace

Result<Edit> EditApplier::apply(const Edit& edit) { return std::visit(*this, edit); }

template <class Item>
std::optional<std::size_t> EditApplier::locate(const std::vector<Item>& list, std::string_view id, int index) const {
  if (index >= 0) {
    const auto exact = static_cast<std::size_t>(index);
    return exact < list.size() && list[exact].id == id ? std::optional(exact) : std::nullopt;
  }
  const auto found = std::ranges::find_if(list, [&](const Item& item) { return item.id == id; });
  return found == list.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - list.begin()));
}

template <class Item>
Result<std::size_t> EditApplier::insertNode(std::vector<Item>& list, const Item& item, int index) {
  if (!isStorable(item)) return notStorable(item.id);
  if (const Verdict verdict = m_ids.canTake(item.id); index < 0 && !verdict) return Error{verdict.reason()};
  const auto point = insertionPoint(index, list.size());
  if (!point) return badIndex(index, list.size());
  list.insert(at(list, *point), item);
  m_ids.note(item.id, 1);
  return *point;
}

Result<Edit> EditApplier::operator()(const AddOp& edit) {
  const Result<std::size_t> point = insertNode(m_block.ops, edit.op, edit.index);
  if (!point) return point.error();
  return Edit(RemoveOp{edit.op.id, static_cast<int>(*point)});
}

Result<Edit> EditApplier::operator()(const RemoveOp& edit) {
  const auto found = locate(m_block.ops, edit.id, edit.index);
  if (!found) return noSuch("op", edit.id);
  if (edit.index < 0 && m_ids.hasWires(edit.id))
    return Error{fmt::format("{} is still connected. Remove its wires and outputs too.", edit.id)};
  AddOp inverse{std::move(m_block.ops[*found]), static_cast<int>(*found)};
  m_block.ops.erase(at(m_block.ops, *found));
  m_ids.note(edit.id, -1);
  return Edit(std::move(inverse));
}

Result<Edit> EditApplier::operator()(const RenameOp& edit) {
  const auto found = locate(m_block.ops, edit.id, -1);
  if (!found) return noSuch("op", edit.id);
  if (edit.id == edit.newId) return Edit(edit);
  if (const Verdict verdict = m_ids.canTake(edit.newId); !verdict) return Error{verdict.reason()};
  const bool isPlain = m_ids.isUndoneByRenaming(edit.id, edit.newId);
  const auto before = isPlain ? std::nullopt : std::optional(m_block);

  DocumentOp& op = m_block.ops[*found];
  const DocumentOp oldOp = op;
  op.id = edit.newId;
  m_ids.follow(edit.id, edit.newId);
  m_ids.note(edit.id, -1);
  m_ids.note(edit.newId, 1);
  if (isPlain) return Edit(RenameOp{edit.newId, edit.id});

  EditGroup inverse{.label = describe(edit), .edits = {}};
  inverse.edits.push_back(RemoveOp{edit.newId, static_cast<int>(*found)});
  inverse.edits.push_back(AddOp{oldOp, static_cast<int>(*found)});
  restoreReferences(m_block, *before, inverse.edits);
  return Edit(std::move(inverse));
}

Result<Edit> EditApplier::operator()(const SetAttribute& edit) {
  const auto found = locate(m_block.ops, edit.id, -1);
  if (!found) return noSuch("op", edit.id);
  if (!isUtf8(edit.name) || !isStorable(edit.value)) return notStorable(edit.name);
  DocumentOp& op = m_block.ops[*found];
  const int known = findKey(op.attributes, edit.name);
  if (known >= 0 && op.attributes[edit.name].is_null()) {
    // A null that is written in the file cannot be said with SetAttribute, where null removes.
    const auto index = static_cast<int>(*found);
    EditGroup inverse{describe(edit), {RemoveOp{edit.id, index}, AddOp{op, index}}};
    setMember(op.attributes, edit.name, edit.value, edit.index);
    return Edit(std::move(inverse));
  }
  MemberChange change = setMember(op.attributes, edit.name, edit.value, edit.index);
  return Edit(SetAttribute{edit.id, edit.name, std::move(change.oldValue), change.oldIndex});
}

Result<Edit> EditApplier::operator()(const SetBypassed& edit) {
  const auto found = locate(m_block.ops, edit.id, -1);
  if (!found) return noSuch("op", edit.id);
  return Edit(SetBypassed{edit.id, std::exchange(m_block.ops[*found].bypassed, edit.bypassed)});
}

Result<Edit> EditApplier::operator()(const AddWire& edit) {
  if (!isStorable(edit.wire)) return notStorable("The wire");
  const auto point = insertionPoint(edit.index, m_block.wires.size());
  if (!point) return badIndex(edit.index, m_block.wires.size());
  m_block.wires.insert(at(m_block.wires, *point), edit.wire);
  return Edit(RemoveWire{edit.wire, static_cast<int>(*point)});
}

Result<Edit> EditApplier::operator()(const RemoveWire& edit) {
  std::vector<Wire>& wires = m_block.wires;
  const auto exact = static_cast<std::size_t>(edit.index);
  const auto found = edit.index < 0                                      ? std::ranges::find(wires, edit.wire)
                     : exact < wires.size() && wires[exact] == edit.wire ? at(wires, exact)
                                                                         : wires.end();
  if (found == wires.end())
    return Error{fmt::format("There is no wire from {} to {}.", toString(edit.wire.from), toString(edit.wire.to))};
  AddWire inverse{edit.wire, static_cast<int>(found - wires.begin())};
  wires.erase(found);
  return Edit(std::move(inverse));
}

Result<Edit> EditApplier::operator()(const AddInput& edit) {
  const Result<std::size_t> point = insertNode(m_block.inputs, edit.input, edit.index);
  if (!point) return point.error();
  return Edit(RemoveInput{edit.input.id, static_cast<int>(*point)});
}

Result<Edit> EditApplier::operator()(const RemoveInput& edit) {
  const auto found = locate(m_block.inputs, edit.id, edit.index);
  if (!found) return noSuch("input", edit.id);
  if (edit.index < 0 && m_ids.hasWires(edit.id))
    return Error{fmt::format("Input {} is still connected. Remove its wires too.", edit.id)};
  AddInput inverse{std::move(m_block.inputs[*found]), static_cast<int>(*found)};
  m_block.inputs.erase(at(m_block.inputs, *found));
  m_ids.note(edit.id, -1);
  return Edit(std::move(inverse));
}

Result<Edit> EditApplier::operator()(const ReplaceInput& edit) {
  const auto found = locate(m_block.inputs, edit.id, -1);
  if (!found) return noSuch("input", edit.id);
  if (!isStorable(edit.input)) return notStorable(edit.id);
  const std::string& newId = edit.input.id;
  const bool isRenamed = newId != edit.id;
  if (const Verdict verdict = isRenamed ? m_ids.canTake(newId) : Verdict::yes(); !verdict)
    return Error{verdict.reason()};
  const bool isPlain = !isRenamed || m_ids.isUndoneByRenaming(edit.id, newId);
  const auto before = isPlain ? std::nullopt : std::optional(m_block);

  DocumentInput old = std::exchange(m_block.inputs[*found], edit.input);
  if (!isRenamed) return Edit(ReplaceInput{edit.id, std::move(old)});
  m_ids.follow(edit.id, newId);
  m_ids.note(edit.id, -1);
  m_ids.note(newId, 1);
  if (isPlain) return Edit(ReplaceInput{newId, std::move(old)});

  const auto index = static_cast<int>(*found);
  EditGroup inverse{describe(edit), {RemoveInput{newId, index}, AddInput{std::move(old), index}}};
  restoreReferences(m_block, *before, inverse.edits);
  return Edit(std::move(inverse));
}

Result<Edit> EditApplier::operator()(const AddOutput& edit) {
  const Result<std::size_t> point = insertNode(m_block.outputs, edit.output, edit.index);
  if (!point) return point.error();
  return Edit(RemoveOutput{edit.output.id, static_cast<int>(*point)});
}

Result<Edit> EditApplier::operator()(const RemoveOutput& edit) {
  const auto found = locate(m_block.outputs, edit.id, edit.index);
  if (!found) return noSuch("output", edit.id);
  AddOutput inverse{std::move(m_block.outputs[*found]), static_cast<int>(*found)};
  m_block.outputs.erase(at(m_block.outputs, *found));
  m_ids.note(edit.id, -1);
  return Edit(std::move(inverse));
}

Result<Edit> EditApplier::operator()(const ReplaceOutput& edit) {
  const auto found = locate(m_block.outputs, edit.id, -1);
  if (!found) return noSuch("output", edit.id);
  if (!isStorable(edit.output)) return notStorable(edit.id);
  const std::string& newId = edit.output.id;
  const bool isRenamed = newId != edit.id;
  if (const Verdict verdict = isRenamed ? m_ids.canTake(newId) : Verdict::yes(); !verdict)
    return Error{verdict.reason()};
  const bool isPlain = !isRenamed || m_ids.isUndoneByRenaming(edit.id, newId);
  const auto before = isPlain ? std::nullopt : std::optional(m_block);

  DocumentOutput old = std::exchange(m_block.outputs[*found], edit.output);
  if (!isRenamed) return Edit(ReplaceOutput{edit.id, std::move(old)});
  m_ids.followPosition(edit.id, newId);
  m_ids.note(edit.id, -1);
  m_ids.note(newId, 1);
  if (isPlain) return Edit(ReplaceOutput{newId, std::move(old)});

  EditGroup inverse{.label = describe(edit), .edits = {}};
  restoreReferences(m_block, *before, inverse.edits);
  return Edit(std::move(inverse));
}

Result<Edit> EditApplier::operator()(const MoveNode& edit) {
  auto& positions = m_block.positions;
  const auto found = std::ranges::find_if(positions, [&](const auto& entry) { return entry.first == edit.id; });
  if (found != positions.end()) {
    MoveNode inverse{edit.id, found->second, static_cast<int>(found - positions.begin())};
    if (edit.position)
      found->second = *edit.position;
    else
      positions.erase(found);
    return Edit(std::move(inverse));
  }
  if (!edit.position) return Edit(edit);
  if (!isUtf8(edit.id)) return notStorable("The id");
  if (edit.index < 0 && m_ids.count(edit.id) == 0) return noSuch("node", edit.id);
  const auto point = insertionPoint(edit.index, positions.size());
  if (!point) return badIndex(edit.index, positions.size());
  positions.insert(at(positions, *point), {edit.id, *edit.position});
  return Edit(MoveNode{edit.id, std::nullopt});
}

Result<Edit> EditApplier::operator()(const AddFrame& edit) {
  std::vector<DocumentFrame>& frames = m_block.frames;
  const DocumentFrame& frame = edit.frame;
  if (!isStorable(frame)) return notDrawable(frame);
  if (edit.index < 0 && frame.id.empty()) return Error{"The id of a frame must not be empty."};
  if (edit.index < 0 && locate(frames, frame.id, -1))
    return Error{fmt::format("A frame named {} already exists.", frame.id)};
  const auto point = insertionPoint(edit.index, frames.size());
  if (!point) return badIndex(edit.index, frames.size());
  frames.insert(at(frames, *point), frame);
  return Edit(RemoveFrame{frame.id, static_cast<int>(*point)});
}

Result<Edit> EditApplier::operator()(const RemoveFrame& edit) {
  const auto found = locate(m_block.frames, edit.id, edit.index);
  if (!found) return noSuchFrame(edit.id);
  AddFrame inverse{std::move(m_block.frames[*found]), static_cast<int>(*found)};
  m_block.frames.erase(at(m_block.frames, *found));
  return Edit(std::move(inverse));
}

Result<Edit> EditApplier::operator()(const ReplaceFrame& edit) {
  const auto found = locate(m_block.frames, edit.frame.id, -1);
  if (!found) return noSuchFrame(edit.frame.id);
  if (!isStorable(edit.frame)) return notDrawable(edit.frame);
  return Edit(ReplaceFrame{std::exchange(m_block.frames[*found], edit.frame)});
}

Result<Edit> EditApplier::operator()(const SetSymbol& edit) {
  if (!isUtf8(edit.name) || !isStorable(edit.value)) return notStorable("The symbol " + edit.name);
  MemberChange change = setMember(m_document.m_symbols, edit.name, edit.value, edit.index);
  return Edit(SetSymbol{edit.name, std::move(change.oldValue), change.oldIndex});
}

Result<Edit> EditApplier::operator()(const SetRecipe& edit) {
  if (!isStorable(edit.recipe)) return notStorable("The recipe");
  return Edit(SetRecipe{std::exchange(m_document.m_recipe, edit.recipe)});
}

Result<Edit> EditApplier::operator()(const SetFusion& edit) {
  if (!isStorable(edit.fusion)) return notStorable("The fusion section");
  return Edit(SetFusion{std::exchange(m_document.m_fusion, edit.fusion)});
}

PipelineDocument EditApplier::section(const PipelineDocument& document, DocumentBlock block) {
  PipelineDocument section;
  section.m_pipeline = std::move(block);
  section.m_blocks = document.m_blocks;
  section.m_symbols = document.m_symbols;
  section.m_recipe = recipeWithoutPlaces(document.m_recipe);
  return section;
}

Result<Edit> EditApplier::operator()(const AddBlock& edit) {
  if (isInBlock()) return blocksDoNotNest(edit.name);
  if (!isUtf8(edit.name) || !isStorable(edit.block)) return notStorable("Block " + edit.name);
  if (const Verdict verdict = checkId(edit.name); edit.index < 0 && !verdict) return Error{verdict.reason()};
  if (m_document.findBlock(edit.name)) return Error{fmt::format("A block named {} already exists.", edit.name)};
  auto& blocks = m_document.m_blocks;
  const auto point = insertionPoint(edit.index, blocks.size());
  if (!point) return badIndex(edit.index, blocks.size());
  blocks.insert(at(blocks, *point), {edit.name, edit.block});
  return Edit(RemoveBlock{edit.name, static_cast<int>(*point)});
}

Result<Edit> EditApplier::operator()(const RemoveBlock& edit) {
  if (isInBlock()) return blocksDoNotNest(edit.name);
  auto& blocks = m_document.m_blocks;
  const auto found = std::ranges::find_if(blocks, [&](const auto& entry) { return entry.first == edit.name; });
  const auto index = static_cast<int>(found - blocks.begin());
  if (found == blocks.end() || (edit.index >= 0 && edit.index != index)) return noSuchBlock(edit.name);
  if (const std::string user = edit.index < 0 ? userOf(edit.name) : ""; !user.empty())
    return Error{fmt::format("Block {} is used by {}; expand or remove its instances first.", edit.name, user)};
  AddBlock inverse{edit.name, std::move(found->second), index};
  blocks.erase(found);
  return Edit(std::move(inverse));
}

Result<Edit> EditApplier::operator()(const ReplaceBlock& edit) {
  if (isInBlock()) return blocksDoNotNest(edit.name);
  DocumentBlock* block = m_document.mutableBlock(edit.name);
  if (!block) return noSuchBlock(edit.name);
  if (!isStorable(edit.block)) return notStorable("Block " + edit.name);
  return Edit(ReplaceBlock{edit.name, std::exchange(*block, edit.block)});
}

Result<Edit> EditApplier::operator()(const EditInBlock& edit) {
  if (isInBlock()) return blocksDoNotNest(edit.name);
  DocumentBlock* block = m_document.mutableBlock(edit.name);
  if (!block) return noSuchBlock(edit.name);
  Result<Edit> inverse = EditApplier(m_document, block)(EditGroup{.label = {}, .edits = edit.edits});
  if (!inverse) return inverse.error();
  return Edit(EditInBlock{edit.name, std::move(std::get<EditGroup>(*inverse).edits)});
}

Result<Edit> EditApplier::operator()(const EditGroup& group) {
  EditGroup inverse{.label = describe(group), .edits = {}};
  inverse.edits.reserve(group.edits.size());
  for (const Edit& edit : group.edits) {
    Result<Edit> undo = apply(edit);
    if (undo) {
      inverse.edits.push_back(std::move(*undo));
      continue;
    }
    for (auto done = inverse.edits.rbegin(); done != inverse.edits.rend(); ++done) (void)apply(*done);
    return undo.error();
  }
  std::ranges::reverse(inverse.edits);
  return Edit(std::move(inverse));
}

bool EditApplier::isInBlock() const { return &m_block != &m_document.m_pipeline; }

// "layer1", or "attention of block Layer": the first instance of a block.
std::string EditApplier::userOf(std::string_view name) const {
  const auto instanceIn = [&](const DocumentBlock& block) -> const DocumentOp* {
    const auto found = std::ranges::find_if(block.ops, [&](const DocumentOp& op) { return blockNameOf(op) == name; });
    return found == block.ops.end() ? nullptr : &*found;
  };
  if (const DocumentOp* op = instanceIn(m_document.m_pipeline)) return op->id;
  for (const auto& [container, block] : m_document.m_blocks)
    if (const DocumentOp* op = instanceIn(block)) return fmt::format("{} of block {}", op->id, container);
  return {};
}

Error EditApplier::noSuch(std::string_view kind, std::string_view id) const {
  std::vector<std::string> ids;
  for (const DocumentInput& input : m_block.inputs) ids.push_back(input.id);
  for (const DocumentOp& op : m_block.ops) ids.push_back(op.id);
  for (const DocumentOutput& output : m_block.outputs) ids.push_back(output.id);
  return Error{fmt::format("There is no {} {}{}", kind, id, didYouMean(nearest(id, ids)))};
}

Error EditApplier::noSuchFrame(std::string_view id) const {
  std::vector<std::string> ids;
  for (const DocumentFrame& frame : m_block.frames) ids.push_back(frame.id);
  return Error{fmt::format("There is no frame {}{}", id, didYouMean(nearest(id, ids)))};
}

Error EditApplier::noSuchBlock(std::string_view name) const {
  std::vector<std::string> names;
  for (const auto& [known, block] : m_document.m_blocks) names.push_back(known);
  return Error{fmt::format("There is no block {}{}", name, didYouMean(nearest(name, names)))};
}

}  // namespace fuseline
