// Edits inside a block may be of many ops of the graph.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/edit_extent.h"

namespace fuseline {

namespace {

/// Adds the nodes that an edit names.
class NamedNodes {
 public:
  explicit NamedNodes(EditExtent& extent) : m_extent(extent) {}

  void operator()(const AddOp& edit) { add(edit.op.id); }
  void operator()(const RemoveOp& edit) { add(edit.id); }
  void operator()(const SetAttribute& edit) { add(edit.id); }
  void operator()(const SetBypassed& edit) { add(edit.id); }
  void operator()(const AddWire& edit) { addEnds(edit.wire); }
  void operator()(const RemoveWire& edit) { addEnds(edit.wire); }
  void operator()(const AddInput& edit) { add(edit.input.id); }
  void operator()(const RemoveInput& edit) { add(edit.id); }
  void operator()(const AddOutput& edit) { addOutput(edit.output); }
  void operator()(const RemoveOutput& edit) { add(edit.id); }
  void operator()(const ReplaceOutput& edit) {
    addOutput(edit.output);
    if (edit.id != edit.output.id) m_extent.changesOtherNodes = true;
  }
  void operator()(const MoveNode& edit) { m_extent.movedNodes.insert(edit.id); }
  void operator()(const AddFrame&) {}
  void operator()(const RemoveFrame&) {}
  void operator()(const ReplaceFrame&) {}
  void operator()(const SetFusion&) { m_extent.changesSwitches = true; }
  template <class Other>
  void operator()(const Other&) {
    m_extent.changesOtherNodes = true;
  }

 private:
  void add(const std::string& id) { m_extent.nodes.insert(id); }
  void addOutput(const DocumentOutput& output) {
    add(output.id);
    if (!output.from.node.empty()) add(output.from.node);
  }
  void addEnds(const Wire& wire) {
    add(wire.from.node);
    add(wire.to.node);
  }
  EditExtent& m_extent;
};

template <class... Kinds>
bool isOneOf(const Edit& edit) {
  return (std::holds_alternative<Kinds>(edit) || ...);
}

void add(const Edit& edit, EditExtent& extent) {
  if (const auto* group = std::get_if<EditGroup>(&edit)) {
    for (const Edit& part : group->edits) add(part, extent);
    return;
  }
  std::visit(NamedNodes(extent), edit);
  if (const auto* set = std::get_if<SetAttribute>(&edit)) {
    extent.attributesOf.insert(set->id);
  } else if (isOneOf<MoveNode, AddFrame, RemoveFrame, ReplaceFrame>(edit)) {
    extent.changesView = true;
  } else {
    extent.changesMore = true;
  }
}

}  // namespace

EditExtent extentOf(const std::vector<Edit>& edits) {
  EditExtent extent;
  for (const Edit& edit : edits) add(edit, extent);
  return extent;
}

}  // namespace fuseline
