// Text of endpoints and edits.
// SPDX-License-Identifier: Apache-2.0
#include "core/document/edit.h"

#include <fmt/format.h>

namespace fuseline {

std::string toString(const Endpoint& endpoint) {
  return endpoint.port.empty() ? endpoint.node : endpoint.node + "." + endpoint.port;
}

// "x." keeps its dot in the node, so that every text is written back as it was read.
Endpoint parseEndpoint(const std::string& text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string::npos || dot + 1 == text.size()) return {.node = text, .port = {}};
  return {.node = text.substr(0, dot), .port = text.substr(dot + 1)};
}

namespace {

struct Describe {
  std::string operator()(const AddOp& edit) const { return "Add " + edit.op.operation; }
  std::string operator()(const RemoveOp& edit) const { return "Remove " + edit.id; }
  std::string operator()(const RenameOp& edit) const { return fmt::format("Rename {} to {}", edit.id, edit.newId); }
  std::string operator()(const SetAttribute& edit) const {
    return fmt::format("{} {}.{}", edit.value.is_null() ? "Reset" : "Set", edit.id, edit.name);
  }
  std::string operator()(const SetBypassed& edit) const {
    return (edit.bypassed.value_or(false) ? "Bypass " : "Re-enable ") + edit.id;
  }
  std::string operator()(const AddWire& edit) const {
    return fmt::format("Connect {} to {}", toString(edit.wire.from), toString(edit.wire.to));
  }
  std::string operator()(const RemoveWire& edit) const {
    return fmt::format("Disconnect {} from {}", toString(edit.wire.from), toString(edit.wire.to));
  }
  std::string operator()(const AddInput& edit) const { return "Add input " + edit.input.id; }
  std::string operator()(const RemoveInput& edit) const { return "Remove input " + edit.id; }
  std::string operator()(const ReplaceInput& edit) const { return "Change input " + edit.id; }
  std::string operator()(const AddOutput& edit) const { return "Add output " + edit.output.id; }
  std::string operator()(const RemoveOutput& edit) const { return "Remove output " + edit.id; }
  std::string operator()(const ReplaceOutput& edit) const { return "Change output " + edit.id; }
  std::string operator()(const MoveNode& edit) const {
    return (edit.position ? "Move " : "Place automatically ") + edit.id;
  }
  std::string operator()(const AddFrame& edit) const { return edit.frame.isNote() ? "Add note" : "Add frame"; }
  std::string operator()(const RemoveFrame& edit) const { return "Remove frame " + edit.id; }
  std::string operator()(const ReplaceFrame& edit) const { return "Change frame " + edit.frame.id; }
  std::string operator()(const SetSymbol& edit) const {
    return (edit.value.is_null() ? "Remove symbol " : "Set symbol ") + edit.name;
  }
  std::string operator()(const SetRecipe& edit) const { return edit.recipe.is_null() ? "Remove recipe" : "Set recipe"; }
  std::string operator()(const SetFusion& edit) const {
    return edit.fusion.is_null() ? "Reset fusion choices" : "Set fusion choices";
  }
  std::string operator()(const AddBlock& edit) const { return "Add block " + edit.name; }
  std::string operator()(const RemoveBlock& edit) const { return "Remove block " + edit.name; }
  std::string operator()(const ReplaceBlock& edit) const { return "Change block " + edit.name; }
  std::string operator()(const EditInBlock& edit) const {
    const std::string what = edit.edits.empty() ? "Nothing" : describe(edit.edits.front());
    return fmt::format("{} in block {}", what, edit.name);
  }
  std::string operator()(const EditGroup& group) const {
    if (!group.label.empty()) return group.label;
    return group.edits.empty() ? "Nothing" : describe(group.edits.front());
  }
};

}  // namespace

std::string describe(const Edit& edit) { return std::visit(Describe{}, edit); }

}  // namespace fuseline
