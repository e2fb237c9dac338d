// Each verb checks its names first, so that an error names both the found and the expected value.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/edit_request.h"

#include "core/document/block_operation.h"
#include "core/edit/apply_edit.h"
#include "core/edit/edit_script.h"
#include "core/edit/fold_repeats.h"
#include "core/edit/links.h"
#include "core/edit/node_edits.h"
#include "core/edit/renaming.h"
#include "core/lowering/document_operation.h"
#include "core/lowering/lowering.h"
#include "core/support/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace fuseline {

namespace {

constexpr std::array kVerbs = {
    EditVerbInfo{EditVerb::Insert, "insert", "TYPE", "Insert an op of this type; follow it with --before or --after"},
    EditVerbInfo{EditVerb::Replace, "replace", "OP=TYPE",
                 "Replace an op by one of another type; its id, wires and common attributes stay"},
    EditVerbInfo{EditVerb::Delete, "delete", "OP",
                 "Delete an op, an input or an output; consumers of a deleted op then consume its main input"},
    EditVerbInfo{EditVerb::Connect, "connect", "A.PORT=B.PORT", "Connect an output to an input, replacing its wire"},
    EditVerbInfo{EditVerb::Disconnect, "disconnect", "B.PORT", "Remove the wire of this input"},
    EditVerbInfo{EditVerb::SetAttribute, "set-attribute", "OP.NAME=VALUE",
                 "Set an attribute to a number, text, list or expression; an empty VALUE restores its default"},
    EditVerbInfo{EditVerb::SetSymbol, "set-symbol", "NAME=VALUE",
                 "Set a symbol to a number or an expression; an empty VALUE removes it"},
    EditVerbInfo{EditVerb::Rename, "rename", "OP=ID", "Rename an op, an input or an output"},
    EditVerbInfo{EditVerb::Repeat, "repeat", "OP=N",
                 "Chain N copies of an op or block instance, the original included"},
    EditVerbInfo{EditVerb::Bypass, "bypass", "OP", "Bypass an op: its main input goes to its consumers"},
    EditVerbInfo{EditVerb::Use, "unbypass", "OP", "Re-enable a bypassed op"},
    EditVerbInfo{EditVerb::FoldRepeats, "fold-repeats", "",
                 "Fold repeated ops, such as the layers of a model, into instances of one block"}};

const EditVerbInfo& infoOf(EditVerb verb) { return *std::ranges::find(kVerbs, verb, &EditVerbInfo::verb); }

struct Assignment {
  std::string name;
  std::string value;
};

/// Ids may contain '=', so the name ends before the sign that completes the longest known id; without one, before the
/// first sign.
std::size_t endOfName(const PipelineDocument& document, const std::string& text) {
  std::size_t end = text.find('=');
  std::size_t longestId = 0;
  for (std::size_t at = end; at != std::string::npos; at = text.find('=', at + 1)) {
    const std::string id = parseEndpoint(text.substr(0, at)).node;
    if (id.size() <= longestId || !document.idExists(id)) continue;
    longestId = id.size();
    end = at;
  }
  return end;
}

/// "fc1=LayerNorm". Errors (Usage): there is no '=', or no name before it.
Result<Assignment> assignmentOf(const PipelineDocument& document, const EditRequest& request) {
  const std::size_t at = endOfName(document, request.argument);
  if (at == std::string::npos || at == 0)
    return Error{fmt::format("expected {}.", infoOf(request.verb).argument), ErrorKind::Usage};
  return Assignment{request.argument.substr(0, at), request.argument.substr(at + 1)};
}

std::vector<std::string> allIds(const PipelineDocument& document) {
  std::vector<std::string> ids;
  for (const DocumentInput& input : document.inputs()) ids.push_back(input.id);
  for (const DocumentOp& op : document.ops()) ids.push_back(op.id);
  for (const DocumentOutput& output : document.outputs()) ids.push_back(output.id);
  return ids;
}

std::vector<std::string> opsOf(const PipelineDocument& document) {
  std::vector<std::string> ids;
  for (const DocumentOp& op : document.ops()) ids.push_back(op.id);
  return ids;
}

Error unknownId(std::string_view kind, const std::string& id, const std::vector<std::string>& known) {
  const std::string near = nearest(id, known);
  if (!near.empty()) return Error{fmt::format("the pipeline has no {} {}{}", kind, id, didYouMean(near))};
  constexpr std::size_t kMostListed = 12;
  std::vector<std::string> listed(known.begin(), known.begin() + std::min(known.size(), kMostListed));
  if (known.size() > kMostListed) listed.push_back("...");
  return Error{fmt::format("the pipeline has no {} {}. It has: {}.", kind, id, fmt::join(listed, ", "))};
}

Result<DocumentOp> opCalled(const PipelineDocument& document, const std::string& id) {
  if (const DocumentOp* op = document.findOp(id)) return *op;
  return unknownId("op", id, opsOf(document));
}

/// Errors: neither the op library nor the document knows this type.
Result<OperationPointer> typeCalled(const PipelineDocument& document, const std::string& type) {
  if (OperationPointer operation = operationOf(document, DocumentOp{.id = "new", .operation = type})) return operation;
  std::vector<std::string> known;
  for (const auto& operation : builtinOperations().operations()) known.push_back(operation->name);
  for (const auto& [name, block] : document.blocks()) known.push_back(instanceOf(name));
  return Error{
      fmt::format("there is no op type {}{} `fuseline ops` lists them.", type, didYouMean(nearest(type, known)))};
}

/// Where something before this node would go: the wire into its main input, or into an output.
Result<Link> wireBefore(const PipelineDocument& document, const std::string& id) {
  if (document.findInput(id))
    return Error{fmt::format("{} is an input of the pipeline, so nothing can be before it. Use --after {}.", id, id)};
  Endpoint end{.node = id};
  if (const DocumentOp* op = document.findOp(id)) {
    const OperationPointer operation = operationOf(document, *op);
    if (!operation || operation->inputs.empty()) return Error{fmt::format("{} has no input.", id)};
    end.port = operation->inputs.front().name;
  }
  if (std::optional<Link> link = linkInto(document, end)) return *link;
  return Error{
      fmt::format("{0} is not connected, so there is no wire to insert into. Connect it first: --connect "
                  "SOURCE={0}.",
                  toString(end))};
}

/// Errors: nothing can follow this node.
Result<void> checkHasOutput(const PipelineDocument& document, const std::string& id) {
  if (document.findOutput(id))
    return Error{fmt::format("{} is an output of the pipeline, so nothing can be after it. Use --before {}.", id, id)};
  const DocumentOp* op = document.findOp(id);
  const OperationPointer operation = op ? operationOf(document, *op) : nullptr;
  if (op && (!operation || operation->outputs.empty())) return Error{fmt::format("{} has no output.", id)};
  return {};
}

Result<Edit> insertion(const PipelineDocument& document, const EditRequest& request) {
  if (request.side == Side::Unknown) return Error{"expected --before OP or --after OP next.", ErrorKind::Usage};
  if (const auto type = typeCalled(document, request.argument); !type) return type.error();
  const std::string& anchor = request.anchor;
  if (!document.idExists(anchor)) return unknownId("op, input or output", anchor, allIds(document));
  const Graph graph = lower(document).graph;
  if (request.side == Side::Before) {
    const Result<Link> wire = wireBefore(document, anchor);
    if (!wire) return wire.error();
    return splice(document, graph, request.argument, *wire, std::nullopt).edit;
  }
  if (const Result<void> follows = checkHasOutput(document, anchor); !follows) return follows.error();
  return insertAfter(document, graph, request.argument, anchor).edit;
}

Result<Edit> replacement(const PipelineDocument& document, const EditRequest& request) {
  const Result<Assignment> parts = assignmentOf(document, request);
  if (!parts) return parts.error();
  if (const auto op = opCalled(document, parts->name); !op) return op.error();
  if (const auto type = typeCalled(document, parts->value); !type) return type.error();
  return replaceOp(document, lower(document).graph, parts->name, parts->value);
}

Result<Edit> deletion(const PipelineDocument& document, const EditRequest& request) {
  if (!document.idExists(request.argument)) return unknownId("op, input or output", request.argument, allIds(document));
  return removeNodes(document, {request.argument}, {}, Reconnect::Yes);
}

Result<Edit> connection(const PipelineDocument& document, const EditRequest& request) {
  const Result<Assignment> parts = assignmentOf(document, request);
  if (!parts) return parts.error();
  const Endpoint from = parseEndpoint(parts->name);
  const Endpoint to = parseEndpoint(parts->value);
  if (!document.findInput(from.node) && !document.findOp(from.node))
    return unknownId("op or input", from.node, allIds(document));
  if (!document.findOutput(to.node) && !document.findOp(to.node))
    return unknownId("op or output", to.node, allIds(document));
  if (const Verdict verdict = linkVerdict(document, from, to); !verdict) return Error{verdict.reason()};
  return linkEdit(document, from, to);
}

Result<Edit> disconnection(const PipelineDocument& document, const EditRequest& request) {
  const Endpoint to = parseEndpoint(request.argument);
  if (!document.idExists(to.node)) return unknownId("op or output", to.node, allIds(document));
  if (const std::optional<Link> link = linkInto(document, to)) return unlinkEdit(document, *link);
  return Error{fmt::format("no wire ends at {}. Expected B.PORT, such as fc.x, or an output.", request.argument)};
}

/// The parts of a list between its commas, but for those within brackets.
std::vector<std::string_view> partsOf(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    const char c = at < text.size() ? text[at] : ',';
    depth += (c == '(' || c == '[') - (c == ')' || c == ']');
    if (c != ',' || (depth > 0 && at < text.size())) continue;
    parts.push_back(text.substr(begin, at - begin));
    begin = at + 1;
  }
  return parts;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// JSON, a list of expressions such as [H, 4*H], or text as it is. Empty: null.
Json valueOf(std::string_view text) {
  text = trimmed(text);
  if (text.empty()) return nullptr;
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_discarded()) return json;
  if (!text.starts_with('[') || !text.ends_with(']')) return std::string(text);
  Json list = Json::array();
  for (const std::string_view part : partsOf(text.substr(1, text.size() - 2))) list.push_back(valueOf(part));
  return list;
}

Error unknownAttribute(const DocumentOp& op, const FusibleOperation& operation, const std::string& name) {
  std::vector<std::string> known;
  for (const AttributeSpec& spec : operation.attributes) known.push_back(spec.name);
  if (known.empty()) return Error{fmt::format("{} ({}) has no attributes.", op.id, op.operation)};
  return Error{fmt::format("{} ({}) has no attribute {}{} It has: {}.", op.id, op.operation, name,
                           didYouMean(nearest(name, known)), fmt::join(known, ", "))};
}

Result<Edit> attributeChange(const PipelineDocument& document, const EditRequest& request) {
  const Result<Assignment> parts = assignmentOf(document, request);
  if (!parts) return parts.error();
  const Endpoint place = parseEndpoint(parts->name);
  if (place.port.empty()) return Error{fmt::format("expected {}.", infoOf(request.verb).argument), ErrorKind::Usage};
  const Result<DocumentOp> op = opCalled(document, place.node);
  if (!op) return op.error();
  Json value = valueOf(parts->value);
  if (const OperationPointer operation = operationOf(document, *op)) {
    const auto spec = std::ranges::find(operation->attributes, place.port, &AttributeSpec::name);
    // A name that is not known can still be removed.
    if (spec == operation->attributes.end() && !op->attributes.contains(place.port))
      return unknownAttribute(*op, *operation, place.port);
    const bool isList = spec != operation->attributes.end() && spec->type == AttributeType::IntegerList;
    if (isList && !value.is_array() && !value.is_null()) value = Json::array({std::move(value)});
  }
  return Edit(SetAttribute{.id = place.node, .name = place.port, .value = std::move(value)});
}

Result<Edit> symbolChange(const PipelineDocument& document, const EditRequest& request) {
  const Result<Assignment> parts = assignmentOf(document, request);
  if (!parts) return parts.error();
  Json value = valueOf(parts->value);
  if (value.is_null() && !document.symbols().contains(parts->name))
    return Error{fmt::format("the pipeline has no symbol {}.", parts->name)};
  return Edit(SetSymbol{.name = parts->name, .value = std::move(value)});
}

Result<Edit> renamed(const PipelineDocument& document, const EditRequest& request) {
  const Result<Assignment> parts = assignmentOf(document, request);
  if (!parts) return parts.error();
  if (!document.idExists(parts->name)) return unknownId("op, input or output", parts->name, allIds(document));
  return renameNode(document, parts->name, parts->value);
}

Result<Edit> repetition(const PipelineDocument& document, const EditRequest& request) {
  const Result<Assignment> parts = assignmentOf(document, request);
  if (!parts) return parts.error();
  constexpr int kMostRepeats = 10'000;
  int count = 0;
  const char* const end = parts->value.data() + parts->value.size();
  const auto [rest, problem] = std::from_chars(parts->value.data(), end, count);
  if (problem != std::errc() || rest != end || count < 2 || count > kMostRepeats)
    return Error{fmt::format("expected OP=N with N from 2 to {}, not \"{}\".", kMostRepeats, parts->value),
                 ErrorKind::Usage};
  if (const auto op = opCalled(document, parts->name); !op) return op.error();
  Result<RepeatedOp> row = repeatOp(document, parts->name, count);
  if (!row) return row.error();
  return std::move(row->edit);
}

Result<Edit> bypassChange(const PipelineDocument& document, const EditRequest& request) {
  const Result<DocumentOp> op = opCalled(document, request.argument);
  if (!op) return op.error();
  const bool bypasses = request.verb == EditVerb::Bypass;
  if (op->isBypassed() == bypasses)
    return Error{fmt::format("{} is {}bypassed already.", op->id, bypasses ? "" : "not ")};
  return toggleBypass(document, {op->id});
}

Result<Edit> folding(const PipelineDocument& document) {
  if (std::optional<FoldedRepeats> folded = foldRepeats(document)) return std::move(folded->edit);
  return Error{fmt::format("no repeated ops: folding needs a sequence of at least {} ops that repeats without changes.",
                           kFewestRepeatedOps)};
}

}  // namespace

std::span<const EditVerbInfo> editVerbs() { return kVerbs; }

std::string toString(const EditRequest& request) {
  std::string text(infoOf(request.verb).name);
  if (!request.argument.empty()) text += " " + request.argument;
  if (request.side != Side::Unknown) text += (request.side == Side::Before ? " before " : " after ") + request.anchor;
  return text;
}

Result<Edit> editFor(const PipelineDocument& document, const EditRequest& request) {
  switch (request.verb) {
    case EditVerb::Insert: return insertion(document, request);
    case EditVerb::Replace: return replacement(document, request);
    case EditVerb::Delete: return deletion(document, request);
    case EditVerb::Connect: return connection(document, request);
    case EditVerb::Disconnect: return disconnection(document, request);
    case EditVerb::SetAttribute: return attributeChange(document, request);
    case EditVerb::SetSymbol: return symbolChange(document, request);
    case EditVerb::Rename: return renamed(document, request);
    case EditVerb::Repeat: return repetition(document, request);
    case EditVerb::Bypass:
    case EditVerb::Use: return bypassChange(document, request);
    case EditVerb::FoldRepeats: return folding(document);
  }
  return Error{"unknown edit."};
}

Result<EditedDocument> editedDocument(PipelineDocument document, std::span<const EditRequest> requests) {
  EditedDocument edited{.document = std::move(document), .edits = {}};
  for (const EditRequest& request : requests) {
    Result<Edit> edit = editFor(edited.document, request);
    if (!edit) return Error{fmt::format("{}: {}", toString(request), edit.error().message), edit.error().kind};
    Result<Edit> inverse = applyEdit(edited.document, *edit);
    if (!inverse) return Error{fmt::format("{}: {}", toString(request), inverse.error().message), inverse.error().kind};
    edited.edits.push_back({std::move(*edit), std::move(*inverse)});
  }
  return edited;
}

}  // namespace fuseline
