// Edits and questions about how ops are wired together.
// SPDX-License-Identifier: Apache-2.0
#include "core/lowering/connections.h"

#include "core/lowering/document_operation.h"
#include "core/support/text.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

namespace fuseline {

namespace {

// The main ports of an op this build may not know.
std::string mainInput(const OperationPointer& operation) {
  return operation && !operation->inputs.empty() ? operation->inputs.front().name : "x";
}
std::string mainOutput(const OperationPointer& operation) {
  return operation && !operation->outputs.empty() ? operation->outputs.front().name : "y";
}

std::string unknownPort(const DocumentOp& op, const std::string& port, std::string_view kind,
                        const std::vector<Port>& ports) {
  std::vector<std::string> names;
  for (const Port& known : ports) names.push_back(known.name);
  return fmt::format("{} ({}) has no {} {}; it has {}.", op.id, op.operation, kind,
                     port.empty() ? "without a name" : "\"" + port + "\"", fmt::join(names, ", "));
}

Verdict checkSource(const PipelineDocument& document, const Endpoint& from) {
  if (const DocumentOp* op = document.findOp(from.node)) {
    const OperationPointer operation = operationOf(document, *op);
    if (!operation || operation->outputIndex(from.port) >= 0) return Verdict::yes();
    return Verdict::no(unknownPort(*op, from.port, "output", operation->outputs));
  }
  if (!document.findInput(from.node))
    return Verdict::no(fmt::format("There is no op or pipeline input {}.", from.node));
  if (from.port.empty()) return Verdict::yes();
  return Verdict::no(fmt::format("Pipeline input {} is a single tensor; it has no port {}.", from.node, from.port));
}

Verdict checkTarget(const PipelineDocument& document, const Endpoint& to) {
  const DocumentOp* op = document.findOp(to.node);
  if (!op) {
    const bool isOther = document.findInput(to.node) || document.findOutput(to.node);
    return Verdict::no(isOther ? fmt::format("{} is not an op. A wire must end at an input of an op.", to.node)
                               : fmt::format("There is no op {}.", to.node));
  }
  const OperationPointer operation = operationOf(document, *op);
  if (!operation || operation->inputIndex(to.port) >= 0) return Verdict::yes();
  return Verdict::no(unknownPort(*op, to.port, "input", operation->inputs));
}

// The ids on a path along wires from one node to another, both included; empty when there is none.
std::vector<std::string> findPath(const PipelineDocument& document, const std::string& from, const std::string& to) {
  std::unordered_multimap<std::string_view, std::string_view> next;
  for (const Wire& wire : document.wires()) next.emplace(wire.from.node, wire.to.node);
  std::unordered_map<std::string_view, std::string_view> cameFrom = {{from, from}};
  std::vector<std::string_view> open = {from};
  while (!open.empty() && !cameFrom.contains(to)) {
    const std::string_view node = open.back();
    open.pop_back();
    const auto [begin, end] = next.equal_range(node);
    for (auto wire = begin; wire != end; ++wire)
      if (cameFrom.emplace(wire->second, node).second) open.push_back(wire->second);
  }
  if (!cameFrom.contains(to)) return {};
  std::vector<std::string> path = {to};
  while (path.back() != from) path.emplace_back(cameFrom.at(path.back()));
  std::ranges::reverse(path);
  return path;
}

}  // namespace

Edit removeOpWithWires(const PipelineDocument& document, std::string_view id, bool reconnect) {
  return removeOpWithWires(document, document.pipeline(), id, reconnect);
}

Edit removeOpWithWires(const PipelineDocument& document, const DocumentBlock& section, std::string_view id,
                       bool reconnect) {
  const auto op = std::ranges::find(section.ops, id, &DocumentOp::id);
  const OperationPointer operation = op != section.ops.end() ? operationOf(document, *op) : nullptr;
  const Endpoint input = {std::string(id), mainInput(operation)};
  const Endpoint output = {std::string(id), mainOutput(operation)};
  const auto& wires = section.wires;
  const auto feed = std::ranges::find(wires, input, &Wire::to);
  const Endpoint* source = reconnect && feed != wires.end() && feed->from.node != id ? &feed->from : nullptr;

  EditGroup group{.label = fmt::format("Remove {}", id), .edits = {}};
  for (int i = static_cast<int>(wires.size()) - 1; i >= 0; --i) {
    const Wire& wire = wires[static_cast<std::size_t>(i)];
    if (wire.from.node != id && wire.to.node != id) continue;
    group.edits.push_back(RemoveWire{wire, i});
    if (source && wire.from == output && wire.to.node != id) group.edits.push_back(AddWire{{*source, wire.to}, i});
  }
  for (int i = static_cast<int>(section.outputs.size()) - 1; i >= 0; --i) {
    const DocumentOutput& reader = section.outputs[static_cast<std::size_t>(i)];
    if (reader.from.node != id) continue;
    group.edits.push_back(RemoveOutput{reader.id, i});
    if (source && reader.from == output)
      group.edits.push_back(AddOutput{{.id = reader.id, .from = *source, .extra = reader.extra}, i});
    else
      group.edits.push_back(MoveNode{reader.id, std::nullopt});
  }
  group.edits.push_back(RemoveOp{std::string(id)});
  group.edits.push_back(MoveNode{std::string(id), std::nullopt});
  return group;
}

Verdict canConnect(const PipelineDocument& document, const Wire& wire) {
  if (const Verdict verdict = checkSource(document, wire.from); !verdict) return verdict;
  if (const Verdict verdict = checkTarget(document, wire.to); !verdict) return verdict;
  if (wire.from.node == wire.to.node)
    return Verdict::no(fmt::format("{} cannot consume its own output.", wire.to.node));
  const auto taken = std::ranges::find(document.wires(), wire.to, &Wire::to);
  if (taken != document.wires().end())
    return Verdict::no(fmt::format("{} is already connected to {}. Remove that wire first.", toString(wire.to),
                                   toString(taken->from)));
  const std::vector<std::string> path = findPath(document, wire.to.node, wire.from.node);
  if (path.empty()) return Verdict::yes();
  return Verdict::no(fmt::format("This wire would close a cycle: {} -> {}.", fmt::join(path, " -> "), wire.to.node));
}

}  // namespace fuseline
