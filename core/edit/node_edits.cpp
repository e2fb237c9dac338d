// Composed edits. Each is tried out on a scratch copy, so that the parts of a group always fit together.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/node_edits.h"

#include "core/document/block_operation.h"
#include "core/edit/apply_edit.h"
#include "core/edit/edit_script.h"
#include "core/edit/filling.h"
#include "core/lowering/connections.h"
#include "core/lowering/document_operation.h"
#include "core/lowering/lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace fuseline {

namespace {

std::string stemOf(std::string_view entry) {
  std::string stem(entry.starts_with(kBlockPrefix) ? entry.substr(kBlockPrefix.size()) : entry);
  std::ranges::transform(stem, stem.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return stem;
}

DocumentInput freshInput(const PipelineDocument& document) {
  if (!document.inputs().empty()) {
    DocumentInput input = document.inputs().front();
    input.id = document.freeId("x");
    input.extra = Json::object();
    return input;
  }
  return {.id = document.freeId("x"), .dtype = "bf16", .shape = Json::array({512, 1024})};
}

/// Adds the node itself. Returns its id.
std::string addTo(EditScript& script, std::string_view entry, const Value* source, std::optional<Position> position) {
  const PipelineDocument& document = script.document();
  std::string id;
  if (entry == kInputEntry) {
    const DocumentInput input = freshInput(document);
    id = input.id;
    script.add(AddInput{.input = input});
  } else if (entry == kOutputEntry) {
    id = document.freeId("y");
    script.add(AddOutput{.output = {.id = id}});
  } else {
    id = document.freeId(stemOf(entry));
    DocumentOp op{.id = id, .operation = std::string(entry)};
    if (const auto operation = operationOf(document, op)) op.attributes = guessAttributes(document, *operation, source);
    script.add(AddOp{.op = std::move(op)});
  }
  if (position) script.add(MoveNode{.id = id, .position = *position});
  return id;
}

/// Where the main output of a node can be read; nullopt for outputs and unknown ops.
std::optional<Endpoint> mainOutput(const PipelineDocument& document, const std::string& id) {
  if (document.findInput(id)) return Endpoint{.node = id};
  const DocumentOp* op = document.findOp(id);
  const OperationPointer operation = op ? operationOf(document, *op) : nullptr;
  if (!operation || operation->outputs.empty()) return std::nullopt;
  return Endpoint{.node = id, .port = operation->outputs.front().name};
}

/// The end of the pipeline: the source of the first output, else the last op, else the first input.
std::string lastNode(const PipelineDocument& document) {
  for (const DocumentOutput& output : document.outputs()) {
    if (document.idExists(output.from.node)) return output.from.node;
  }
  if (!document.ops().empty()) return document.ops().back().id;
  return document.inputs().empty() ? std::string() : document.inputs().front().id;
}

/// The only output that is not connected yet, as the link to come; nothing where there are several.
std::vector<Link> freeOutput(const PipelineDocument& document) {
  std::vector<Link> links;
  for (const DocumentOutput& output : document.outputs())
    if (toString(output.from).empty()) links.push_back({.from = {}, .to = {.node = output.id}, .isOutput = true});
  return links.size() == 1 ? links : std::vector<Link>();
}

/// Connects a new node between `source` and its consumers; without any, to the output that is still free. A node
/// without a main input or output stays unconnected.
void wireBetween(EditScript& script, const std::string& id, const Endpoint& source, const std::vector<Link>& readers) {
  const DocumentOp* op = script.document().findOp(id);
  const OperationPointer operation = op ? operationOf(script.document(), *op) : nullptr;
  if (!operation) return;
  if (!operation->outputs.empty()) {
    const Endpoint result{id, operation->outputs.front().name};
    const std::vector<Link> next = readers.empty() ? freeOutput(script.document()) : readers;
    for (const Link& reader : next) addLink(script, result, reader.to);
  }
  if (!operation->inputs.empty()) addLink(script, source, {id, operation->inputs.front().name});
}

/// Those that would go with the op read nothing from then on.
void keepOutputsOf(EditScript& script, const std::string& op, Reconnect reconnect) {
  const PipelineDocument before = script.document();
  PipelineDocument without = before;
  (void)applyEdit(without, removeOpWithWires(before, op, reconnect == Reconnect::Yes));
  for (const DocumentOutput& output : before.outputs())
    if (!without.findOutput(output.id)) removeLink(script, {output.from, {output.id, {}}, true});
}

void removeNode(EditScript& script, const std::string& id, Reconnect reconnect, OrphanedOutputs outputs) {
  const PipelineDocument& document = script.document();
  if (document.findOp(id)) {
    if (outputs == OrphanedOutputs::Kept) keepOutputsOf(script, id, reconnect);
    script.add(removeOpWithWires(script.document(), id, reconnect == Reconnect::Yes));
    return;
  }
  for (const Link& link : readersOf(document, {.node = id})) removeLink(script, link);
  if (positionOf(document.pipeline(), id)) script.add(MoveNode{.id = id, .position = std::nullopt});
  if (document.findInput(id)) script.add(RemoveInput{.id = id});
  if (document.findOutput(id)) script.add(RemoveOutput{.id = id});
}

/// "layer3" after "layer1" where "layer2" is taken.
std::string nextId(const PipelineDocument& document, const std::string& id) {
  const std::size_t digits = id.find_last_not_of("0123456789") + 1;
  const bool hasNumber = digits < id.size() && id.size() - digits <= 6;
  const std::string stem = hasNumber ? id.substr(0, digits) : id;
  int number = hasNumber ? std::stoi(id.substr(digits)) : 1;
  std::string next;
  do next = stem + std::to_string(++number);
  while (document.idExists(next));
  return next;
}

/// Empty: the op can stand in a row of its like.
std::string whyNotInARow(const PipelineDocument& document, const std::string& id) {
  const DocumentOp* op = document.findOp(id);
  const OperationPointer operation = op ? operationOf(document, *op) : nullptr;
  if (!operation || operation->inputs.empty() || operation->outputs.empty())
    return id + " cannot be repeated: it needs an input and an output.";
  const std::string& input = operation->inputs.front().name;
  const std::string& output = operation->outputs.front().name;
  for (const Link& link : linksOf(document)) {
    if (link.to.node == id && link.to.port != input)
      return id + " also consumes " + toString(link.from) + ". Only ops with a single connected input can be repeated.";
    if (link.from.node == id && link.from.port != output)
      return toString(link.from) + " also has a consumer. Only ops with a single connected output can be repeated.";
  }
  return {};
}

/// Where a wire of `before` goes in `after`: to the port of its name, or from one main port to the other. Empty:
/// nowhere.
template <class Port>
std::string portInstead(const std::string& port, const std::vector<Port>& before, const std::vector<Port>& after) {
  if (std::ranges::find(after, port, &Port::name) != after.end()) return port;
  const bool isMain = !before.empty() && before.front().name == port;
  return isMain && !after.empty() ? after.front().name : std::string();
}

/// Fills in required attributes; common attributes keep their values.
Json attributesInstead(const PipelineDocument& document, const DocumentOp& old, const FusibleOperation& operation,
                       const Value* source) {
  Json attributes = guessAttributes(document, operation, source);
  for (const AttributeSpec& spec : operation.attributes)
    if (old.attributes.contains(spec.name)) attributes[spec.name] = old.attributes[spec.name];
  return attributes;
}

/// The wires of an op that is another one now.
class Rewiring {
 public:
  Rewiring(std::string id, const FusibleOperation& before, const FusibleOperation& after)
      : m_id(std::move(id)), m_before(before), m_after(after) {}

  /// Errors: one has no port to go to.
  Result<void> rewire(EditScript& script) const {
    const PipelineDocument document = script.document();
    std::set<std::string> fed;  // no input has two wires
    for (std::size_t i = 0; i < document.wires().size(); ++i) {
      const Wire& wire = document.wires()[i];
      const Wire next{endInstead(wire.from, m_before.outputs, m_after.outputs),
                      endInstead(wire.to, m_before.inputs, m_after.inputs)};
      const bool isTaken = next.to.node == m_id && !fed.insert(next.to.port).second;
      if (isNowhere(next.from) || isNowhere(next.to) || isTaken) return lost(wire.from, toString(wire.to));
      if (next == wire) continue;
      script.add(RemoveWire{wire, static_cast<int>(i)});
      script.add(AddWire{next, static_cast<int>(i)});
    }
    for (const DocumentOutput& output : document.outputs()) {
      DocumentOutput next = output;
      next.from = endInstead(output.from, m_before.outputs, m_after.outputs);
      if (isNowhere(next.from)) return lost(output.from, output.id);
      if (!(next == output)) script.add(ReplaceOutput{.id = output.id, .output = next});
    }
    return {};
  }

 private:
  template <class Port>
  Endpoint endInstead(const Endpoint& end, const std::vector<Port>& before, const std::vector<Port>& after) const {
    return end.node == m_id ? Endpoint{end.node, portInstead(end.port, before, after)} : end;
  }
  bool isNowhere(const Endpoint& end) const { return end.node == m_id && end.port.empty(); }
  Error lost(const Endpoint& from, const std::string& to) const {
    return {m_after.name + " has no port for the wire from " + toString(from) + " to " + to + "."};
  }

  std::string m_id;
  const FusibleOperation& m_before;
  const FusibleOperation& m_after;
};

}  // namespace

NodeEdit addNode(const PipelineDocument& document, std::string_view entry, std::optional<Position> position) {
  EditScript script(document);
  const std::string id = addTo(script, entry, nullptr, position);
  return {.edit = std::move(script).finish("Add " + std::string(entry)), .id = id};
}

NodeEdit insertAfter(const PipelineDocument& document, const Graph& graph, std::string_view entry,
                     const std::string& after) {
  std::string anchor = after.empty() ? lastNode(document) : after;
  if (const DocumentOutput* output = document.findOutput(anchor)) anchor = output->from.node;
  const std::optional<Endpoint> source = mainOutput(document, anchor);
  if (!source || entry == kInputEntry) return addNode(document, entry, std::nullopt);
  EditScript script(document);
  const std::optional<Position> place = makeRoom(script, anchor);
  const std::string id = addTo(script, entry, valueAt(graph, *source), place);
  if (entry == kOutputEntry) {
    addLink(script, *source, {.node = id});
  } else {
    wireBetween(script, id, *source, readersOf(document, *source));
  }
  return {.edit = std::move(script).finish("Insert " + std::string(entry) + " after " + anchor), .id = id};
}

NodeEdit addBeside(const PipelineDocument& document, const Graph& graph, std::string_view entry,
                   const std::string& beside, const Position& position) {
  const std::optional<Endpoint> source = mainOutput(document, beside);
  if (!source || entry == kInputEntry) return addNode(document, entry, position);
  EditScript script(document);
  const std::string id = addTo(script, entry, valueAt(graph, *source), position);
  std::vector<Link> readers = readersOf(document, *source);
  if (!std::ranges::all_of(readers, &Link::isOutput)) readers.clear();
  entry == kOutputEntry ? addLink(script, *source, {.node = id}) : wireBetween(script, id, *source, readers);
  return {.edit = std::move(script).finish("Add " + std::string(entry) + " after " + beside), .id = id};
}

PipelineDocument newPipeline() {
  EditScript script{PipelineDocument()};
  addTo(script, kInputEntry, nullptr, Position{0, 0});
  addTo(script, kOutputEntry, nullptr, Position{2 * kNodePitchPx, 0});
  return script.document();
}

NodeEdit splice(const PipelineDocument& document, const Graph& graph, std::string_view entry, const Link& link,
                std::optional<Position> position) {
  EditScript script(document);
  const std::optional<Position> place = position ? position : makeRoom(script, link.from.node);
  const std::string id = addTo(script, entry, valueAt(graph, link.from), place);
  wireBetween(script, id, link.from, {link});
  return {.edit = std::move(script).finish("Insert " + std::string(entry) + " before " + link.to.node), .id = id};
}

namespace {

/// Would a new node of this entry take the tensor at this port? Tried in a pipeline that has nothing else.
Verdict takes(const PipelineDocument& document, std::string_view entry, const std::string& port, const Value& source) {
  PipelineDocument alone;
  for (const auto& [name, block] : document.blocks()) (void)applyEdit(alone, AddBlock{.name = name, .block = block});
  const std::string dtype(dtypeName(source.spec.dtype));
  (void)applyEdit(alone, AddInput{{.id = "source", .dtype = dtype, .shape = Json(source.spec.shape)}});
  EditScript script(std::move(alone));
  const std::string id = addTo(script, entry, &source, std::nullopt);
  script.add(AddWire{{{"source", {}}, {id, port}}});
  for (const Diagnostic& problem : lower(script.document()).diagnostics)
    if (problem.node == id && (problem.code == "shape-mismatch" || problem.code == "dtype-mismatch"))
      return Verdict::no(problem.message);
  return Verdict::yes();
}

/// Where inference has other inputs to wait for, the dtype alone is known to be wrong.
Verdict mayTake(const Port& port, const Value& source) {
  const bool readsCounts = port.elements == PortElements::Counts;
  if (readsCounts != isFloat(source.spec.dtype)) return Verdict::yes();
  return Verdict::no(
      fmt::format("{} reads {}, not {}.", port.name, readsCounts ? "counts" : "numbers", dtypeName(source.spec.dtype)));
}

/// Port of an input or output of the pipeline that was just added.
Result<Endpoint> portOfEnd(const PipelineDocument& document, const std::string& id, const LooseWire& wire) {
  if (document.findOutput(id))
    return wire.isFromOutput ? Result<Endpoint>(Endpoint{id, {}})
                             : Error{"An output of the pipeline cannot be the source of a wire."};
  return wire.isFromOutput ? Result<Endpoint>(Error{"An input of the pipeline cannot be the target of a wire."})
                           : Endpoint{id, {}};
}

/// The port of the node that was just added which takes the wire. Errors: none does; why the first one does not.
Result<Endpoint> portFor(const PipelineDocument& document, const std::string& id, const LooseWire& wire,
                         const Value* source) {
  const DocumentOp* op = document.findOp(id);
  if (!op) return portOfEnd(document, id, wire);
  const OperationPointer operation = operationOf(document, *op);
  if (!operation) return Error{op->operation + " is not known here."};
  if (!wire.isFromOutput) return Endpoint{id, operation->outputs.front().name};
  std::string reason = op->operation + " reads nothing.";
  for (const Port& port : operation->inputs) {
    Verdict verdict = source ? mayTake(port, *source) : Verdict::yes();
    if (verdict && source) verdict = takes(document, op->operation, port.name, *source);
    if (verdict) return Endpoint{id, port.name};
    if (&port == &operation->inputs.front()) reason = verdict.reason();
  }
  return Error{reason};
}

}  // namespace

Result<NodeEdit> addAtWire(const PipelineDocument& document, const Graph& graph, std::string_view entry,
                           const LooseWire& wire, std::optional<Position> position) {
  const Value* source = wire.isFromOutput ? valueAt(graph, wire.at) : nullptr;
  EditScript script(document);
  const std::string id = addTo(script, entry, source, position);
  const Result<Endpoint> port = portFor(script.document(), id, wire, source);
  if (!port) return port.error();
  wire.isFromOutput ? addLink(script, wire.at, *port) : addLink(script, *port, wire.at);
  if (!wire.isFromOutput) fillAttributes(script, wire.at.node);
  return NodeEdit{std::move(script).finish("Add " + std::string(entry) + " at " + toString(wire.at)), id};
}

Result<Edit> replaceOp(const PipelineDocument& document, const Graph& graph, const std::string& id,
                       std::string_view entry) {
  const auto old = std::ranges::find(document.ops(), id, &DocumentOp::id);
  if (old == document.ops().end()) return Error{id + " is no op."};
  DocumentOp next = *old;
  next.operation = entry;
  const OperationPointer before = operationOf(document, *old);
  OperationPointer after = operationOf(document, next);
  if (!before || !after) return Error{std::string(before ? entry : old->operation) + " is not a known op."};
  const auto feed = before->inputs.empty() ? std::nullopt : linkInto(document, {id, before->inputs.front().name});
  next.attributes = attributesInstead(document, *old, *after, feed ? valueAt(graph, feed->from) : nullptr);
  after = operationOf(document, next);
  const auto index = static_cast<int>(old - document.ops().begin());
  EditScript script(document);
  script.add(RemoveOp{id, index});
  script.add(AddOp{next, index});
  if (Result<void> rewired = Rewiring(id, *before, *after).rewire(script); !rewired) return rewired.error();
  return std::move(script).finish("Replace " + id + " by " + std::string(entry));
}

Result<RepeatedOp> repeatOp(const PipelineDocument& document, const std::string& id, int count) {
  if (const std::string problem = whyNotInARow(document, id); !problem.empty()) return Error{problem};
  const DocumentOp op = *document.findOp(id);
  const std::string input = operationOf(document, op)->inputs.front().name;
  const Endpoint result = *mainOutput(document, id);
  const std::vector<Link> readers = readersOf(document, result);
  RepeatedOp row{.edit = {}, .ids = {id}};
  EditScript script(document);
  for (int i = 1; i < count; ++i) {
    const std::optional<Position> place = makeRoom(script, row.ids.back());
    DocumentOp next = op;
    next.id = nextId(script.document(), row.ids.back());
    script.add(AddOp{.op = next});
    if (place) script.add(MoveNode{.id = next.id, .position = *place});
    script.add(AddWire{.wire = {{row.ids.back(), result.port}, {next.id, input}}});
    row.ids.push_back(next.id);
  }
  for (const Link& reader : readers) addLink(script, {row.ids.back(), result.port}, reader.to);
  row.edit = std::move(script).finish("Repeat " + id + " " + std::to_string(count) + " times");
  return row;
}

Edit removeNodes(const PipelineDocument& document, const std::set<std::string>& ids, const std::vector<Link>& links,
                 Reconnect reconnect, OrphanedOutputs outputs) {
  EditScript script(document);
  for (const Link& link : links) removeLink(script, link);
  // In the document's order, so that the same selection always gives the same edit.
  const auto removeListed = [&](const auto& nodes) {
    for (const auto& node : nodes) {
      if (ids.contains(node.id)) removeNode(script, node.id, reconnect, outputs);
    }
  };
  removeListed(document.ops());
  removeListed(document.inputs());
  removeListed(document.outputs());
  const std::size_t count = ids.size();
  const std::string single = count == 1 ? "Remove " + *ids.begin() : std::string();
  return std::move(script).finish(!single.empty() ? single : count == 0 ? "Disconnect" : countLabel("Remove", count));
}

namespace {

/// Problem with bypasses that `after` has and `before` does not; empty if there is none.
std::string bypassProblem(const PipelineDocument& before, const PipelineDocument& after) {
  const auto problemsOf = [](const PipelineDocument& document) {
    std::set<std::string> messages;
    for (const Diagnostic& diagnostic : lower(document).diagnostics)
      if (diagnostic.code == kBypassRefusedCode || diagnostic.code == "output-is-input")
        messages.insert(diagnostic.message);
    return messages;
  };
  const std::set<std::string> known = problemsOf(before);
  for (const std::string& message : problemsOf(after))
    if (!known.contains(message)) return message;
  return {};
}

}  // namespace

Result<Edit> toggleBypass(const PipelineDocument& document, const std::set<std::string>& ids) {
  std::vector<const DocumentOp*> ops;
  for (const DocumentOp& op : document.ops())
    if (ids.contains(op.id)) ops.push_back(&op);
  if (ops.empty()) return Error{"No ops are selected. Select the ops to bypass."};
  const bool isUsed = std::ranges::any_of(ops, [](const DocumentOp* op) { return !op->isBypassed(); });
  EditScript script(document);
  for (const DocumentOp* op : ops)
    if (op->isBypassed() != isUsed)
      script.add(SetBypassed{.id = op->id, .bypassed = isUsed ? std::optional(true) : std::nullopt});
  const std::string problem = isUsed ? bypassProblem(document, script.document()) : std::string();
  if (!problem.empty()) return Error{problem};
  return std::move(script).finish(countLabel(isUsed ? "Bypass" : "Re-enable", ops.size()));
}

}  // namespace fuseline
