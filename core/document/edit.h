// Edit: one change of a pipeline document, as a value that can be stored, inverted, merged and offered as a repair.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/json.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace fuseline {

struct Position {
  int x = 0;
  int y = 0;
  bool operator==(const Position&) const = default;
};

/// "norm.y" or, for a pipeline input, "x": an op id and a port, or an input id and no port.
struct Endpoint {
  std::string node;
  std::string port;
  bool operator==(const Endpoint&) const = default;
  auto operator<=>(const Endpoint&) const = default;
};
std::string toString(const Endpoint& endpoint);
Endpoint parseEndpoint(const std::string& text);

struct Wire {
  Endpoint from;
  Endpoint to;
  bool operator==(const Wire&) const = default;
};

/// The parts of a document. `extra` keeps fields this version does not know, to be written back in place.
struct DocumentInput {
  std::string id;
  std::string dtype = "bf16";
  Json shape = Json::array();  // integers, symbols or expressions
  std::optional<bool> requiresGradient;
  Json extra = Json::object();
  bool operator==(const DocumentInput&) const = default;
};

struct DocumentOp {
  /// Its main input goes to those that read its main output, as if it were not there.
  bool isBypassed() const { return bypassed.value_or(false); }

  std::string id;
  std::string operation;
  Json attributes = Json::object();  // as written; expressions stay expressions
  std::optional<bool> bypassed = std::nullopt;
  Json extra = Json::object();
  bool operator==(const DocumentOp&) const = default;
};

struct DocumentOutput {
  std::string id;
  Endpoint from;
  Json extra = Json::object();
  bool operator==(const DocumentOutput&) const = default;
};

/// The upper left corner of a frame, and its size: in the units of positions.
struct FrameArea {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
  bool operator==(const FrameArea&) const = default;
};

/// A titled frame around ops, or a note. It is only for readers and has no effect on the pipeline.
struct DocumentFrame {
  bool isNote() const { return text.has_value(); }
  /// Neither moved nor resized by hand.
  bool isLocked() const { return locked.value_or(false); }

  std::string id;  // its namespace is that of the frames beside it: a node may bear it, too
  std::string title = {};
  std::optional<std::string> text = std::nullopt;  // of a note, which has no title; lines of plain text
  std::optional<FrameArea> area = std::nullopt;    // nullopt: it is nowhere to be seen
  std::string color = {};                          // a name, see kFrameColors; empty or unknown: grey
  std::optional<bool> locked = std::nullopt;
  Json extra = Json::object();
  bool operator==(const DocumentFrame&) const = default;
};

/// Ops and how they are wired: the pipeline, or a block, which ops with "op": "block:NAME" are instances of. The inputs
/// and outputs of a block are the ports of its instances; the first of each is the main one.
struct DocumentBlock {
  std::vector<DocumentInput> inputs;
  std::vector<DocumentOp> ops;
  std::vector<Wire> wires;
  std::vector<DocumentOutput> outputs;
  std::vector<std::pair<std::string, Position>> positions;
  std::vector<DocumentFrame> frames;
  // Unknown fields, by the object they stand in: "" (the block itself), "view", "positions".
  std::map<std::string, Json> extra;
  bool operator==(const DocumentBlock&) const = default;
};

struct EditGroup;
struct EditInBlock;

/// `index` is the position in the document's list. -1 is the user's form: additions append and need a free id, removals
/// take the first match and need its wires gone. An explicit index is the exact form that inverses and repairs use: it
/// does precisely that, also in a document that is wrong, such as one with two equal wires or ids, so that undo gives
/// back the same bytes.
struct AddOp {
  DocumentOp op;
  int index = -1;
};
struct RemoveOp {
  std::string id;
  int index = -1;
};  // its wires must be gone; removeOpWithWires() builds the group
struct RenameOp {
  std::string id;
  std::string newId;
};  // wires, outputs and positions follow
struct SetAttribute {
  std::string id;
  std::string name;
  Json value;
  int index = -1;
};  // null value removes it
struct SetBypassed {
  std::string id;
  std::optional<bool> bypassed;
};  // nullopt removes it: the op is used
struct AddWire {
  Wire wire;
  int index = -1;
};
struct RemoveWire {
  Wire wire;
  int index = -1;
};
struct AddInput {
  DocumentInput input;
  int index = -1;
};
struct RemoveInput {
  std::string id;
  int index = -1;
};
struct ReplaceInput {
  std::string id;
  DocumentInput input;
};  // wires follow a new id
struct AddOutput {
  DocumentOutput output;
  int index = -1;
};
struct RemoveOutput {
  std::string id;
  int index = -1;
};
struct ReplaceOutput {
  std::string id;
  DocumentOutput output;
};
struct MoveNode {
  std::string id;
  std::optional<Position> position;
  int index = -1;
};  // nullopt: automatic
struct AddFrame {
  DocumentFrame frame;
  int index = -1;
};
struct RemoveFrame {
  std::string id;
  int index = -1;
};
struct ReplaceFrame {
  DocumentFrame frame;
};  // the first with this id becomes this one
struct SetSymbol {
  std::string name;
  Json value;
  int index = -1;
};  // null removes it
struct SetRecipe {
  Json recipe;
};  // null removes it
struct SetFusion {
  Json fusion;
};  // null removes it

struct AddBlock {
  std::string name;
  DocumentBlock block;
  int index = -1;
};
struct RemoveBlock {
  std::string name;
  int index = -1;
};  // its instances must be gone
struct ReplaceBlock {
  std::string name;
  DocumentBlock block;
};

using Edit =
    std::variant<AddOp, RemoveOp, RenameOp, SetAttribute, SetBypassed, AddWire, RemoveWire, AddInput, RemoveInput,
                 ReplaceInput, AddOutput, RemoveOutput, ReplaceOutput, MoveNode, AddFrame, RemoveFrame, ReplaceFrame,
                 SetSymbol, SetRecipe, SetFusion, AddBlock, RemoveBlock, ReplaceBlock, EditInBlock, EditGroup>;

/// Several edits that are one entry of the history. Applied in order, all or nothing.
struct EditGroup {
  std::string label;
  std::vector<Edit> edits;
};

/// Edits of the inside of a block, as if it were the pipeline. Applied in order, all or nothing.
struct EditInBlock {
  std::string name;
  std::vector<Edit> edits;
};

/// "Add RMSNorm", "Set fc1.bias": the text of the undo menu.
std::string describe(const Edit& edit);

}  // namespace fuseline
