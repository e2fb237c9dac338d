// Composed edits. Each is tried out on a scratch copy, so that the parts of a group always fit together.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/edits.h"

#include "core/edit/apply_edit.h"
#include "core/edit/block_edits.h"
#include "core/lowering/connections.h"
#include "core/lowering/document_operation.h"
#include "ui/canvas/metrics.h"
#include "ui/session/edit_script.h"
#include "ui/theme/format.h"

#include <QRegularExpression>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

namespace fuseline::ui {

namespace {

std::string stemOf(std::string_view entry) {
  std::string stem(entry.starts_with(kBlockPrefix) ? entry.substr(kBlockPrefix.size()) : entry);
  std::ranges::transform(stem, stem.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return stem;
}

/// The name of the only symbol with this value; otherwise the number.
Json symbolOrNumber(const PipelineDocument& document, std::int64_t value) {
  std::string name;
  for (const auto& [symbol, definition] : document.symbols().items()) {
    if (!definition.is_number_integer() || definition.get<std::int64_t>() != value) continue;
    if (!name.empty()) return value;
    name = symbol;
  }
  return name.empty() ? Json(value) : Json(name);
}

/// Required attributes start with the width of the tensor the op is put behind; the inspector shows them.
Json guessAttributes(const PipelineDocument& document, const FusibleOperation& operation, const Value* source) {
  Json attributes = Json::object();
  if (!source) return attributes;
  const Json width = symbolOrNumber(document, source->spec.cols());
  for (const AttributeSpec& spec : operation.attributes) {
    if (!spec.isRequired()) continue;
    if (spec.type == AttributeType::Integer) attributes[spec.name] = width;
    if (spec.type == AttributeType::IntegerList)  // -1 where an extent may follow from the others
      attributes[spec.name] = spec.minimum.value_or(0.0) < 0.0 ? Json::array({-1, width}) : Json::array({width});
    if (spec.type == AttributeType::Real) attributes[spec.name] = 1.0;
  }
  return attributes;
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

/// The end of the pipeline: what the first output reads, else the last op, else the first input.
std::string lastNode(const PipelineDocument& document) {
  for (const DocumentOutput& output : document.outputs()) {
    if (document.idExists(output.from.node)) return output.from.node;
  }
  if (!document.ops().empty()) return document.ops().back().id;
  return document.inputs().empty() ? std::string() : document.inputs().front().id;
}

/// Joins a new node between `source` and those who read from it. A node without a main input or output stays apart.
void wireBetween(EditScript& script, const std::string& id, const Endpoint& source, const std::vector<Link>& readers) {
  const DocumentOp* op = script.document().findOp(id);
  const OperationPointer operation = op ? operationOf(script.document(), *op) : nullptr;
  if (!operation) return;
  if (!operation->outputs.empty()) {
    const Endpoint result{id, operation->outputs.front().name};
    for (const Link& reader : readers) addLink(script, result, reader.to);
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
    script.add(removeOpWithWires(document, id, reconnect == Reconnect::Yes));
    return;
  }
  for (const Link& link : readersOf(document, {.node = id})) removeLink(script, link);
  if (positionOf(document, id)) script.add(MoveNode{.id = id, .position = std::nullopt});
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
    return id + " is no op that can be repeated.";
  const std::string& input = operation->inputs.front().name;
  const std::string& output = operation->outputs.front().name;
  for (const Link& link : linksOf(document)) {
    if (link.to.node == id && link.to.port != input)
      return id + " reads " + toString(link.from) + " besides: only what has one input can be repeated.";
    if (link.from.node == id && link.from.port != output)
      return toString(link.from) + " is read besides: only what has one output can be repeated.";
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

/// Guesses what it needs; what both have stays as it is.
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

std::vector<std::string> errorsAt(const PipelineDocument& document, const std::string& node) {
  std::vector<std::string> messages;
  for (const Diagnostic& diagnostic : lower(document).diagnostics) {
    if (diagnostic.severity == Severity::Error && diagnostic.node == node) messages.push_back(diagnostic.message);
  }
  return messages;
}

}  // namespace

std::vector<Link> linksOf(const PipelineDocument& document) {
  std::vector<Link> links;
  for (const Wire& wire : document.wires()) links.push_back({.from = wire.from, .to = wire.to});
  for (const DocumentOutput& output : document.outputs()) {
    if (!output.from.node.empty()) links.push_back({.from = output.from, .to = {.node = output.id}, .isOutput = true});
  }
  return links;
}

std::optional<Link> linkInto(const PipelineDocument& document, const Endpoint& to) {
  for (const Link& link : linksOf(document)) {
    if (link.to == to) return link;
  }
  return std::nullopt;
}

Verdict linkVerdict(const PipelineDocument& document, const Endpoint& from, const Endpoint& to) {
  if (document.findOutput(to.node)) return Verdict::yes();
  PipelineDocument scratch = document;
  if (const auto taken = linkInto(document, to)) (void)applyEdit(scratch, RemoveWire{.wire = {taken->from, taken->to}});
  return canConnect(scratch, {from, to});
}

std::set<std::string> reachable(const PipelineDocument& document, const std::string& node, Direction direction) {
  std::multimap<std::string, std::string> next;
  for (const Wire& wire : document.wires()) {
    direction == Direction::Upstream ? next.emplace(wire.to.node, wire.from.node)
                                     : next.emplace(wire.from.node, wire.to.node);
  }
  std::set<std::string> found = {node};
  std::vector<std::string> open = {node};
  while (!open.empty()) {
    const auto [begin, end] = next.equal_range(std::exchange(open.back(), {}));
    open.pop_back();
    for (auto step = begin; step != end; ++step) {
      if (found.insert(step->second).second) open.push_back(step->second);
    }
  }
  return found;
}

std::string linkWarning(const PipelineDocument& document, const Endpoint& from, const Endpoint& to) {
  PipelineDocument scratch = document;
  if (!applyEdit(scratch, linkEdit(document, from, to))) return {};
  const std::vector<std::string> before = errorsAt(document, to.node);
  for (const std::string& message : errorsAt(scratch, to.node)) {
    if (std::ranges::find(before, message) == before.end()) return message;
  }
  return {};
}

Edit linkEdit(const PipelineDocument& document, const Endpoint& from, const Endpoint& to) {
  EditScript script(document);
  addLink(script, from, to);
  return std::move(script).finish("Connect " + toString(from) + " to " + toString(to));
}

Edit unlinkEdit(const PipelineDocument& document, const Link& link) {
  EditScript script(document);
  removeLink(script, link);
  return std::move(script).finish("Disconnect " + toString(link.to));
}

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

/// Of an input or an output that was just added.
Result<Endpoint> portOfEnd(const PipelineDocument& document, const std::string& id, const LooseWire& wire) {
  if (document.findOutput(id))
    return wire.isFromOutput ? Result<Endpoint>(Endpoint{id, {}})
                             : Error{"An output makes nothing that could be read."};
  return wire.isFromOutput ? Result<Endpoint>(Error{"An input reads nothing."}) : Endpoint{id, {}};
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
  if (!before || !after) return Error{std::string(before ? entry : old->operation) + " is no op that is known here."};
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

Edit removeNodes(const PipelineDocument& document, const QSet<QString>& ids, const std::vector<Link>& links,
                 Reconnect reconnect, OrphanedOutputs outputs) {
  EditScript script(document);
  for (const Link& link : links) removeLink(script, link);
  // In the document's order, so that the same selection always gives the same edit.
  const auto removeListed = [&](const auto& nodes) {
    for (const auto& node : nodes) {
      if (ids.contains(toQt(node.id))) removeNode(script, node.id, reconnect, outputs);
    }
  };
  removeListed(document.ops());
  removeListed(document.inputs());
  removeListed(document.outputs());
  const auto count = static_cast<std::size_t>(ids.size());
  const std::string single = count == 1 ? "Remove " + ids.begin()->toStdString() : std::string();
  return std::move(script).finish(!single.empty() ? single : count == 0 ? "Disconnect" : countLabel("Remove", count));
}

namespace {

/// What stands in the way of bypasses that `after` has and `before` has not; empty: nothing.
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

Result<Edit> toggleBypass(const PipelineDocument& document, const QSet<QString>& ids) {
  std::vector<const DocumentOp*> ops;
  for (const DocumentOp& op : document.ops())
    if (ids.contains(toQt(op.id))) ops.push_back(&op);
  if (ops.empty()) return Error{"Select the ops to bypass."};
  const bool isUsed = std::ranges::any_of(ops, [](const DocumentOp* op) { return !op->isBypassed(); });
  EditScript script(document);
  for (const DocumentOp* op : ops)
    if (op->isBypassed() != isUsed)
      script.add(SetBypassed{.id = op->id, .bypassed = isUsed ? std::optional(true) : std::nullopt});
  const std::string problem = isUsed ? bypassProblem(document, script.document()) : std::string();
  if (!problem.empty()) return Error{problem};
  return std::move(script).finish(countLabel(isUsed ? "Bypass" : "Use again", ops.size()));
}

namespace {

/// Every name that stands in a text of the value, such as M and H of "2*M + H".
void collectNames(const Json& value, std::set<std::string>& names) {
  if (value.is_structured())
    for (const Json& member : value) collectNames(member, names);
  if (!value.is_string()) return;
  static const QRegularExpression kName(QStringLiteral("[A-Za-z_][A-Za-z0-9_]*"));
  auto match = kName.globalMatch(toQt(value.get<std::string>()));
  while (match.hasNext()) names.insert(match.next().captured().toStdString());
}

/// The symbols of the document that the ops of a piece of it name, and those that these name.
std::set<std::string> symbolsUsedBy(const PipelineDocument& document, const PipelineDocument& piece) {
  std::set<std::string> names;
  for (const DocumentOp& op : piece.ops()) collectNames(op.attributes, names);
  for (const auto& [name, block] : piece.blocks()) {
    for (const DocumentInput& input : block.inputs) collectNames(input.shape, names);
    for (const DocumentOp& op : block.ops) collectNames(op.attributes, names);
  }
  std::size_t numBefore = 0;
  while (std::exchange(numBefore, names.size()) != names.size())
    for (const auto& [name, value] : document.symbols().items())
      if (names.contains(name)) collectNames(value, names);
  std::erase_if(names, [&](const std::string& name) { return !document.symbols().contains(name); });
  return names;
}

}  // namespace

QString copyFragment(const PipelineDocument& document, const QSet<QString>& ids,
                     const std::vector<std::string>& frames) {
  PipelineDocument fragment;
  const auto isChosen = [&](const std::string& id) { return ids.contains(toQt(id)); };
  for (const DocumentOp& op : document.ops()) {
    if (!isChosen(op.id)) continue;
    (void)applyEdit(fragment, AddOp{.op = op});
    if (const auto position = positionOf(document, op.id)) {
      (void)applyEdit(fragment, MoveNode{.id = op.id, .position = position});
    }
  }
  for (const Wire& wire : document.wires()) {
    if (fragment.findOp(wire.from.node) && fragment.findOp(wire.to.node))
      (void)applyEdit(fragment, AddWire{.wire = wire});
  }
  for (const std::string& id : frames)
    if (const DocumentFrame* frame = document.findFrame(id)) (void)applyEdit(fragment, AddFrame{.frame = *frame});
  if (fragment.ops().empty() && fragment.frames().empty()) return QString();
  for (const std::string& name : blocksUsedBy(document, fragment.ops())) {
    (void)applyEdit(fragment, AddBlock{.name = name, .block = *document.findBlock(name)});
  }
  for (const std::string& name : symbolsUsedBy(document, fragment))
    (void)applyEdit(fragment, SetSymbol{.name = name, .value = document.symbols()[name]});
  Json json = Json::parse(serialize(fragment));
  json["fragment"] = true;
  return toQt(json.dump(2));
}

namespace {

Error notPastable() { return Error{.message = "The clipboard holds no ops. Copy some in Fuseline first."}; }

/// A piece of a pipeline, or a whole one, from text. Errors: it is neither, or its text is broken, with the place.
Result<PipelineDocument> pastedDocument(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("pipeline")) return notPastable();
  LoadedDocument loaded = parseDocument(text);
  if (loaded.document.isReadOnly()) return Error{loaded.diagnostics.front().message};
  const PipelineDocument& pasted = loaded.document;
  if (pasted.ops().empty() && pasted.inputs().empty() && pasted.frames().empty()) return notPastable();
  return std::move(loaded.document);
}

std::optional<int> lowestRow(const PipelineDocument& document) {
  std::optional<int> lowest;
  for (const auto& [id, position] : document.positions()) lowest = std::max(position.y, lowest.value_or(position.y));
  for (const DocumentFrame& frame : document.frames())
    if (frame.area) lowest = std::max(frame.area->y + frame.area->height, lowest.value_or(frame.area->y));
  return lowest;
}

/// Adds what another document holds under ids that are free.
class Paste {
 public:
  Paste(const PipelineDocument& document, const PipelineDocument& pasted, QPoint offset)
      : m_before(document), m_pasted(pasted), m_script(document), m_offset(offset) {}

  FragmentEdit run(bool isWhole) && {
    if (isWhole) takeSettings();
    for (const auto& [name, value] : m_pasted.symbols().items())
      if (!m_before.symbols().contains(name)) m_script.add(SetSymbol{.name = name, .value = value});
    addBlocks();
    for (const DocumentInput& input : m_pasted.inputs()) add<AddInput>(input);
    for (const DocumentOp& op : m_pasted.ops()) add<AddOp>(withBlock(op));
    for (const Wire& wire : m_pasted.wires())
      if (isPasted(wire.from) && isPasted(wire.to))
        m_script.add(AddWire{.wire = {renamed(wire.from), renamed(wire.to)}});
    for (DocumentOutput output : m_pasted.outputs()) {
      output.from = isPasted(output.from) ? renamed(output.from) : Endpoint();
      add<AddOutput>(output);
    }
    for (const DocumentFrame& frame : m_pasted.frames()) addFrame(frame);
    const std::size_t numNodes = m_newIds.size();
    m_result.edit = std::move(m_script).finish(numNodes == 0 ? "Paste frames" : countLabel("Paste", numNodes));
    return std::move(m_result);
  }

 private:
  /// An empty document becomes the other one; below others it stands apart from them.
  void takeSettings() {
    const bool isEmpty = m_before.ops().empty() && m_before.inputs().empty() && m_before.outputs().empty();
    if (isEmpty && !m_pasted.recipe().is_null()) m_script.add(SetRecipe{m_pasted.recipe()});
    if (isEmpty && !m_pasted.fusion().is_null()) m_script.add(SetFusion{m_pasted.fusion()});
    int top = 0;
    for (const auto& [id, position] : m_pasted.positions()) top = std::min(position.y, top);
    for (const DocumentFrame& frame : m_pasted.frames())
      if (frame.area) top = std::min(frame.area->y, top);
    const std::optional<int> lowest = isEmpty ? std::nullopt : lowestRow(m_before);
    m_offset = lowest ? QPoint(0, *lowest + kRowPitchPx - top) : QPoint();
  }

  /// A block that is there already serves the new instances, too, if it means the same.
  void addBlocks() {
    nameBlocks();
    for (const auto& [name, block] : m_pasted.blocks()) {
      const std::string& newName = m_newBlocks.at(name);
      if (newName == name && m_before.findBlock(name)) continue;
      DocumentBlock named = block;
      for (DocumentOp& op : named.ops) op = withBlock(op);
      m_script.add(AddBlock{.name = newName, .block = std::move(named)});
    }
  }

  /// Until no block holds one that has another name now.
  void nameBlocks() {
    for (const auto& [name, block] : m_pasted.blocks()) m_newBlocks[name] = name;
    for (bool isDone = false; !std::exchange(isDone, true);)
      for (const auto& [name, block] : m_pasted.blocks()) {
        const DocumentBlock* there = m_before.findBlock(name);
        if (!there || m_newBlocks[name] != name || (isAlike(block, *there) && !holdsNewName(block))) continue;
        m_newBlocks[name] = freeBlockName(name);
        isDone = false;
      }
  }

  static bool isAlike(DocumentBlock block, DocumentBlock other) {
    for (DocumentBlock* each : {&block, &other}) {
      each->positions.clear();
      each->frames.clear();
    }
    return block == other;
  }

  bool holdsNewName(const DocumentBlock& block) const {
    return std::ranges::any_of(block.ops, [this](const DocumentOp& op) { return !(withBlock(op) == op); });
  }

  std::string freeBlockName(const std::string& name) const {
    std::string next;
    int number = 1;
    const auto isNew = [&](const auto& entry) { return entry.second == next; };
    do next = name + std::to_string(++number);
    while (m_before.findBlock(next) || m_pasted.findBlock(next) || std::ranges::any_of(m_newBlocks, isNew));
    return next;
  }

  DocumentOp withBlock(DocumentOp op) const {
    const auto found = m_newBlocks.find(std::string(blockNameOf(op)));
    if (found != m_newBlocks.end()) op.operation = instanceOf(found->second);
    return op;
  }

  template <class Addition, class Node>
  void add(Node node) {
    const std::string original = std::exchange(node.id, m_script.document().freeId(node.id));
    m_newIds[original] = node.id;
    m_result.ids.insert(toQt(node.id));
    m_script.add(Addition{node});
    if (const auto p = positionOf(m_pasted, original))
      m_script.add(MoveNode{.id = node.id, .position = Position{p->x + m_offset.x(), p->y + m_offset.y()}});
  }

  void addFrame(DocumentFrame frame) {
    if (!frame.area || frame.id.empty()) return;
    frame.id = m_script.document().freeFrameId(frame.id);
    frame.area->x += m_offset.x();
    frame.area->y += m_offset.y();
    m_result.frames.push_back(frame.id);
    m_script.add(AddFrame{.frame = std::move(frame)});
  }

  /// What is not could be a node of the document by chance.
  bool isPasted(const Endpoint& endpoint) const { return m_newIds.contains(endpoint.node); }
  Endpoint renamed(const Endpoint& endpoint) const { return {m_newIds.at(endpoint.node), endpoint.port}; }

  const PipelineDocument& m_before;
  const PipelineDocument& m_pasted;
  EditScript m_script;
  QPoint m_offset;
  std::map<std::string, std::string> m_newIds;
  std::map<std::string, std::string> m_newBlocks;  // the name of each pasted one
  FragmentEdit m_result;
};

}  // namespace

Result<FragmentEdit> pasteFragment(const PipelineDocument& document, const QString& text, QPoint offset) {
  const Result<PipelineDocument> pasted = pastedDocument(text.toStdString());
  if (!pasted) return pasted.error();
  return Paste(document, *pasted, offset).run(!pasted->outputs().empty() || !pasted->inputs().empty());
}

const Value* valueAt(const Graph& graph, const Endpoint& endpoint) {
  if (endpoint.node.empty()) return nullptr;
  const ValueId direct = graph.findValue(toString(endpoint));
  if (direct >= 0) return &graph.value(direct);
  // A composite's outputs are those of the last op it expanded to.
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    if (node->path != endpoint.node) continue;
    const int port = node->operation->outputIndex(endpoint.port);
    return port < 0 ? nullptr : &graph.value(node->outputs[static_cast<std::size_t>(port)]);
  }
  return nullptr;
}

}  // namespace fuseline::ui
