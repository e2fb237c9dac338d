// Renaming: wires and places that refer to the node follow it.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/renaming.h"

#include "core/document/block_operation.h"
#include "core/edit/moved_places.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// The op itself, a part of it, or the inside of an instance.
MovedPlace movedWith(const std::string& id, const std::string& newId) {
  return [id, newId](const std::string& place) -> std::optional<std::string> {
    if (place != id && !place.starts_with(id + '.')) return std::nullopt;
    return newId + place.substr(id.size());
  };
}

/// nullopt: it is no input and no output.
std::optional<Edit> renamePort(const DocumentBlock& place, const std::string& id, const std::string& newId) {
  if (const auto input = std::ranges::find(place.inputs, id, &DocumentInput::id); input != place.inputs.end()) {
    DocumentInput renamed = *input;
    renamed.id = newId;
    return ReplaceInput{.id = id, .input = std::move(renamed)};
  }
  if (const auto output = std::ranges::find(place.outputs, id, &DocumentOutput::id); output != place.outputs.end()) {
    DocumentOutput renamed = *output;
    renamed.id = newId;
    return ReplaceOutput{.id = id, .output = std::move(renamed)};
  }
  return std::nullopt;
}

/// The wires and outputs of a place at a port of instances there, with its new name.
std::vector<Edit> movedWires(const DocumentBlock& place, const std::string& block, const std::string& port,
                             const std::string& newPort) {
  const auto moved = [&](Endpoint end) {
    const auto op = std::ranges::find(place.ops, end.node, &DocumentOp::id);
    const bool isThere = end.port == port && op != place.ops.end() && blockNameOf(*op) == block;
    if (isThere) end.port = newPort;
    return end;
  };
  std::vector<Edit> edits;
  for (std::size_t i = 0; i < place.wires.size(); ++i) {
    const Wire& wire = place.wires[i];
    const Wire next{moved(wire.from), moved(wire.to)};
    if (next == wire) continue;
    edits.emplace_back(RemoveWire{wire, static_cast<int>(i)});
    edits.emplace_back(AddWire{next, static_cast<int>(i)});
  }
  for (const DocumentOutput& output : place.outputs) {
    DocumentOutput next = output;
    next.from = moved(output.from);
    if (next.from != output.from) edits.emplace_back(ReplaceOutput{.id = output.id, .output = std::move(next)});
  }
  return edits;
}

/// In all places that have instances.
void addMovedWires(EditGroup& group, const PipelineDocument& document, const std::string& block,
                   const std::string& port, const std::string& newPort) {
  std::ranges::move(movedWires(document.pipeline(), block, port, newPort), std::back_inserter(group.edits));
  for (const auto& [name, place] : document.blocks())
    if (std::vector<Edit> edits = movedWires(place, block, port, newPort); !edits.empty())
      group.edits.emplace_back(EditInBlock{name, std::move(edits)});
}

}  // namespace

Edit renameNode(const PipelineDocument& document, const std::string& id, const std::string& newId) {
  if (std::optional<Edit> port = renamePort(document.pipeline(), id, newId)) return *port;
  const RenameOp rename{.id = id, .newId = newId};
  EditGroup group{.label = describe(rename), .edits = {rename}};
  addMovedPlaces(group.edits, document, movesOf(movedWith(id, newId)));
  return group.edits.size() == 1 ? Edit(rename) : Edit(std::move(group));
}

Edit renameInBlock(const PipelineDocument& document, const std::string& block, const std::string& id,
                   const std::string& newId) {
  const DocumentBlock* place = document.findBlock(block);
  const std::optional<Edit> port = place ? renamePort(*place, id, newId) : std::nullopt;
  const Edit rename = port ? *port : Edit(RenameOp{.id = id, .newId = newId});
  EditGroup group{.label = fmt::format("{} in {}", describe(RenameOp{.id = id, .newId = newId}), block),
                  .edits = {EditInBlock{block, {rename}}}};
  port ? addMovedWires(group, document, block, id, newId)
       : addMovedPlaces(group.edits, document, insideOf(document, block, movesOf(movedWith(id, newId))));
  return group;
}

}  // namespace fuseline
