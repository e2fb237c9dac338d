// Links are tried on a scratch copy before they are offered.
// SPDX-License-Identifier: Apache-2.0
#include "core/edit/links.h"

#include "core/edit/apply_edit.h"
#include "core/edit/edit_script.h"
#include "core/edit/filling.h"
#include "core/edit/port_values.h"
#include "core/lowering/connections.h"
#include "core/lowering/lowering.h"

#include <algorithm>
#include <map>
#include <utility>

namespace fuseline {

namespace {

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
  for (const Wire& wire : document.wires())
    if (wire.to == to) return Link{.from = wire.from, .to = wire.to};
  const DocumentOutput* output = to.port.empty() ? document.findOutput(to.node) : nullptr;
  if (!output || output->from.node.empty()) return std::nullopt;
  return Link{.from = output->from, .to = to, .isOutput = true};
}

Verdict linkVerdict(const PipelineDocument& document, const Endpoint& from, const Endpoint& to) {
  if (document.findOutput(to.node)) return Verdict::yes();
  PipelineDocument scratch = document;
  if (const auto taken = linkInto(document, to)) (void)applyEdit(scratch, RemoveWire{.wire = {taken->from, taken->to}});
  return canConnect(scratch, {from, to});
}

std::set<std::string> reachable(const PipelineDocument& document, const std::string& node, FlowDirection direction) {
  std::multimap<std::string, std::string> next;
  for (const Wire& wire : document.wires()) {
    direction == FlowDirection::Upstream ? next.emplace(wire.to.node, wire.from.node)
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
  if (!applyEdit(scratch, connectEdit(document, from, to))) return {};
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

Result<Edit> moveLinks(const PipelineDocument& document, const Endpoint& from, const Endpoint& to) {
  EditScript script(document);
  for (const Link& link : readersOf(document, from)) {
    const Verdict verdict = linkVerdict(script.document(), to, link.to);
    if (!verdict) return Error{.message = verdict.reason(), .kind = ErrorKind::Usage};
    addLink(script, to, link.to);
  }
  return std::move(script).finish("Move the wires of " + toString(from) + " to " + toString(to));
}

const Value* valueAt(const Graph& graph, const Endpoint& endpoint) {
  if (endpoint.node.empty()) return nullptr;
  const ValueId direct = graph.findValue(toString(endpoint));
  if (direct >= 0) return &summedOverRanks(graph, graph.value(direct));
  // A composite's outputs are those of the last op it expanded to.
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    if (node->path != endpoint.node) continue;
    const int port = node->operation->outputIndex(endpoint.port);
    return port < 0 ? nullptr : &graph.value(node->outputs[static_cast<std::size_t>(port)]);
  }
  return nullptr;
}

}  // namespace fuseline
