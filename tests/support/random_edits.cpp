// Edits that users make, and edits that they do not make.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random_edits.h"

#include "core/edit/apply_edit.h"
#include "core/edit/block_edits.h"
#include "core/lowering/connections.h"
#include "tests/support/example_texts.h"

#include <rapidcheck.h>

#include <limits>

namespace fuseline::testing {

PipelineDocument example(const std::string& name) {
  return parseDocument(readFile(examplesFolder() / (name + ".fuseline"))).document;
}

std::string refusal(PipelineDocument document, const Edit& edit) {
  const Result<Edit> result = applyEdit(document, edit);
  return result ? "accepted" : result.error().message;
}

namespace {

/// Much is wrong here: equal ids, equal wires, dangling names, nulls, unknown and malformed parts.
PipelineDocument wrongDocument() {
  return parseDocument(R"({"format": "fuseline-pipeline", "formatVersion": {"major": 1, "minor": 0, "x": 1},
    "symbols": {"M": 8, "H": "M", "N": null},
    "blocks": {"A": {"inputs": [{"id": "x", "z": 1}, 3], "ops": [{"id": "a", "op": "GELU"}, {"id": "a", "op": "block:A"}],
      "wires": [["x", "a.x"], ["a.y", "a.x"]], "outputs": [{"id": "y"}], "view": {"positions": {"a": [1, 2], "b": 3}, "frames": [{"id": "a", "area": [0, 0, 9, 9]}, 4]}},
      "B": 7, "bad id": {"note": 1}},
    "pipeline": {
      "inputs": [{"id": "a", "dtype": "bf16", "shape": ["M"]}, {"id": "x", "dtype": 5, "z": 1}, {"id": "x", "dtype": "f32", "shape": []}],
      "ops": [{"id": "a", "op": "GELU", "attributes": {"n": null, "m": 1}}, {"id": "a", "op": "Bias", "attributes": {"size": 8}},
              7, {"op": "Linear"}, {"id": "b", "op": "Nope", "attributes": {"k": [1, {"l": 2.0}]}, "note": "kept"}],
      "wires": [["x", "a.x"], ["a.y", "b.x"], ["x", "a.x"], ["c.y", "d.x"], ["a.y", "b.x"], ["b.y", "a.x"]],
      "outputs": [{"id": "y", "from": "c.y"}, {"id": "b", "from": "a.y"}, {"id": "y"}]},
    "recipe": {"name": "r"},
    "view": {"positions": {"a": [1, 2], "c": [3, 4], "ghost": [5, 6], "odd": "?"},
      "frames": [{"id": "a", "title": "A", "area": [0, 0, 40, 30], "z": 1}, {"id": "a", "text": "twice", "area": 3}, [],
                 {"title": 7, "color": "blue"}]}})")
      .document;
}

std::vector<PipelineDocument> startingPoints() {
  return {example("llama_mlp"), example("residual_norm"), example("transformer_stack"), wrongDocument(),
          PipelineDocument()};
}

// ---- Random edits, over a small alphabet of names, so that they meet.

rc::Gen<std::string> name() {
  return rc::gen::element<std::string>("a", "b", "c", "d", "x", "y", "fc1", "norm", "save", "add", "ghost", "bad id",
                                       "");
}
rc::Gen<int> index() { return rc::gen::element(-1, -1, -1, 0, 1, 2, 5, 99); }
rc::Gen<Json> value() {
  return rc::gen::element<Json>(nullptr, 1, 2.5, "H", true, Json::array({1, "H"}), Json::object({{"k", 1}}),
                                std::numeric_limits<double>::infinity(), "\xFF");
}
rc::Gen<Endpoint> endpoint() {
  return rc::gen::construct<Endpoint>(name(), rc::gen::element<std::string>("", "x", "y", "extra"));
}
rc::Gen<Wire> wire() { return rc::gen::construct<Wire>(endpoint(), endpoint()); }

std::string blockName() { return *rc::gen::element<std::string>("A", "B", "Layer", "FeedForward", "bad id", "\xFF"); }

DocumentBlock randomBlock(const PipelineDocument& document) {
  if (const DocumentBlock* known = document.findBlock(blockName())) return *known;
  return *rc::gen::element(document.pipeline(), DocumentBlock());
}

/// Ops of the document, and sometimes others.
Edit makeRandomBlock(const PipelineDocument& document) {
  std::vector<std::string> ids = {*name()};
  for (const DocumentOp& op : document.ops())
    if (*rc::gen::arbitrary<bool>()) ids.push_back(op.id);
  const Result<NewBlock> made = makeBlock(document, ids, blockName());
  return made ? made->edit : Edit(EditGroup{.label = "refused", .edits = {}});
}

Edit expandRandomBlock(const PipelineDocument& document) {
  if (document.ops().empty()) return EditGroup{.label = "nothing", .edits = {}};
  const auto which = *rc::gen::inRange<std::size_t>(0, document.ops().size());
  const Result<ExpandedBlock> expanded = expandBlock(document, document.ops()[which].id);
  return expanded ? expanded->edit : Edit(EditGroup{.label = "refused", .edits = {}});
}

DocumentFrame randomFrame() {
  DocumentFrame frame{.id = *name(), .title = *rc::gen::element<std::string>("", "A title", "\xFF")};
  frame.text = *rc::gen::element<std::optional<std::string>>(std::nullopt, "", "two\nlines");
  frame.area =
      *rc::gen::element<std::optional<FrameArea>>(std::nullopt, FrameArea{-8, 8, 80, 40}, FrameArea{0, 0, 0, -1});
  frame.color = *rc::gen::element<std::string>("", "blue", "mauve");
  frame.locked = *rc::gen::element<std::optional<bool>>(std::nullopt, false, true);
  return frame;
}

Edit randomEdit(const PipelineDocument& document, bool isInBlock = false) {
  const auto id = *name();
  const auto at = *index();
  switch (*rc::gen::inRange(isInBlock ? 6 : 0, 28)) {
    case 0: return AddBlock{blockName(), randomBlock(document), at};
    case 1: return RemoveBlock{blockName(), at};
    case 2: return ReplaceBlock{blockName(), randomBlock(document)};
    case 3: return EditInBlock{blockName(), {randomEdit(document, true), randomEdit(document, true)}};
    case 4: return makeRandomBlock(document);
    case 5: return expandRandomBlock(document);
    case 6: return AddOp{{.id = id, .operation = "GELU", .attributes = Json{{"k", *value()}}}, at};
    case 7: return RemoveOp{id, at};
    case 8: return RenameOp{id, *name()};
    case 9: return SetAttribute{id, *rc::gen::element<std::string>("m", "n", "k"), *value(), at};
    case 10: return AddWire{*wire(), at};
    case 11: return RemoveWire{*wire(), at};
    case 12: return AddInput{{.id = id, .shape = Json::array({1})}, at};
    case 13: return RemoveInput{id, at};
    case 14: return ReplaceInput{id, {.id = *name(), .dtype = "f32"}};
    case 15: return AddOutput{{.id = id, .from = *endpoint()}, at};
    case 16: return RemoveOutput{id, at};
    case 17: return ReplaceOutput{id, {.id = *name(), .from = *endpoint()}};
    case 18: return MoveNode{id, *rc::gen::element<std::optional<Position>>(std::nullopt, Position{7, -7}), at};
    case 19: return SetSymbol{*rc::gen::element<std::string>("M", "H", "Q"), *value(), at};
    case 20: return *rc::gen::element<Edit>(SetRecipe{*value()}, SetFusion{*value()});
    case 21: return removeOpWithWires(document, id, *rc::gen::arbitrary<bool>());
    case 22: return AddOp{{.id = id, .operation = "block:" + blockName()}, at};
    case 23: return SetBypassed{id, *rc::gen::element<std::optional<bool>>(std::nullopt, false, true)};
    case 24: return AddFrame{randomFrame(), at};
    case 25: return RemoveFrame{id, at};
    case 26: return ReplaceFrame{randomFrame()};
    default: {
      if (document.wires().empty()) return AddWire{*wire()};
      const auto which = *rc::gen::inRange<std::size_t>(0, document.wires().size());
      return RemoveWire{document.wires()[which], *rc::gen::element(-1, static_cast<int>(which))};
    }
  }
}

}  // namespace

Edit randomEditOrGroup(const PipelineDocument& document) {
  if (*rc::gen::inRange(0, 4) != 0) return randomEdit(document);
  EditGroup group{.label = "group", .edits = {}};
  const int size = *rc::gen::inRange(0, 5);
  for (int i = 0; i < size; ++i) group.edits.push_back(randomEdit(document));
  return group;
}

PipelineDocument randomStart() {
  const std::vector<PipelineDocument> starts = startingPoints();
  return starts[*rc::gen::inRange<std::size_t>(0, starts.size())];
}

}  // namespace fuseline::testing
