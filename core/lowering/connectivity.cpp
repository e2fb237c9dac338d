// Resolves ids, wires and outputs by hash maps, so that very large pipelines stay linear.
// SPDX-License-Identifier: Apache-2.0
#include "core/lowering/connectivity.h"

#include "core/document/json_text.h"
#include "core/document/node_id.h"
#include "core/support/text.h"

#include <algorithm>
#include <functional>
#include <queue>

#include <fmt/format.h>

namespace fuseline {

namespace {

template <class Item>
bool isRawItem(const Item& item) {
  return !item.extra.is_object();
}

std::vector<std::string> namesOf(const std::vector<Port>& ports) {
  std::vector<std::string> names;
  for (const Port& port : ports) names.push_back(port.name);
  return names;
}

std::string quoted(const std::string& text) { return inlineText(Json(shortened(text))); }

}  // namespace

Connectivity::Connectivity(const DocumentBlock& block, std::string_view what, std::vector<OperationPointer> operations,
                           DiagnosticSink& sink)
    : m_block(block), m_what(what), m_operations(std::move(operations)), m_sink(sink) {
  const std::size_t numOps = block.ops.size();
  m_isNamed.resize(numOps);
  m_isInputNamed.resize(block.inputs.size());
  m_sources.resize(numOps);
  m_wireOfPort.resize(numOps);
  m_producers.resize(numOps);
  m_isInputUsed.resize(block.inputs.size());
  m_isMainOutputUsed.resize(numOps);
  for (std::size_t i = 0; i < numOps; ++i) {
    m_sources[i].resize(m_operations[i] ? m_operations[i]->inputs.size() : 0);
    m_wireOfPort[i].resize(m_sources[i].size(), -1);
  }
  const std::size_t numReported = sink.numReported();
  collectIds();
  resolveWires();
  resolveOutputs();
  sortOps();
  m_hasProblems = sink.numReported() > numReported;
}

void Connectivity::collectIds() {
  for (std::size_t i = 0; i < m_block.inputs.size(); ++i)
    takeId(m_block.inputs[i].id, {Source::Kind::Input, i}, fmt::format("/pipeline/inputs/{}", i),
           isRawItem(m_block.inputs[i]) || m_block.inputs[i].extra.contains("id"));
  for (std::size_t i = 0; i < m_block.ops.size(); ++i)
    takeId(m_block.ops[i].id, {Source::Kind::Op, i}, fmt::format("/pipeline/ops/{}", i),
           isRawItem(m_block.ops[i]) || m_block.ops[i].extra.contains("id"));
  for (std::size_t i = 0; i < m_block.outputs.size(); ++i)
    takeId(m_block.outputs[i].id, {Source::Kind::None, i, true}, fmt::format("/pipeline/outputs/{}", i),
           isRawItem(m_block.outputs[i]) || m_block.outputs[i].extra.contains("id"));
}

// isReported: the reader already said that the id is no text.
void Connectivity::takeId(const std::string& id, NodeRef node, const std::string& pointer, bool isReported) {
  if (id.empty()) {
    if (isReported) return;
    m_sink.error("missing-id", {.pointer = pointer}, "\"id\" is missing. Every input, op and output needs one.")
        .repairs = idRepairs(id, node);
    return;
  }
  const auto [known, isNew] = m_nodes.emplace(id, node);
  if (!isNew) {
    m_sink
        .error("duplicate-id", {pointer + "/id", id, {}},
               fmt::format("The id {} is used by another input, op or output. Ids must be unique.", quoted(id)))
        .repairs = idRepairs(id, node);
    return;
  }
  if (node.kind == Source::Kind::Op) m_isNamed[node.index] = true;
  if (node.kind == Source::Kind::Input) m_isInputNamed[node.index] = true;
  if (!node.isOutput) m_readableIds.push_back(id);
  if (const Verdict verdict = checkId(id); !verdict)
    m_sink.error("bad-id", {pointer + "/id", id, {}}, verdict.reason()).repairs = idRepairs(id, node);
}

// Takes the item out and puts it back under a free id: exact, whatever else bears its id.
std::vector<Repair> Connectivity::idRepairs(const std::string& id, const NodeRef& node) {
  // Looking for a free id reads the whole document.
  constexpr int kMostIdRepairs = 100;
  if (m_numIdRepairs++ >= kMostIdRepairs) return {};
  std::string stem;
  for (const char c : id) stem += checkId(std::string(1, c)) ? c : '_';
  const auto index = static_cast<int>(node.index);
  const auto renamed = [&](auto item, const char* fallback) {
    item.id = freeId(m_block, !stem.empty() && isUtf8(stem) ? stem : fallback);
    return item;
  };
  EditGroup group;
  if (node.kind == Source::Kind::Input) {
    const DocumentInput input = renamed(m_block.inputs[node.index], "x");
    group = {"Name it " + input.id, {RemoveInput{id, index}, AddInput{input, index}}};
  } else if (node.kind == Source::Kind::Op) {
    const DocumentOp op = renamed(m_block.ops[node.index], "op");
    group = {"Name it " + op.id, {RemoveOp{id, index}, AddOp{op, index}}};
  } else {
    const DocumentOutput output = renamed(m_block.outputs[node.index], "y");
    group = {"Name it " + output.id, {RemoveOutput{id, index}, AddOutput{output, index}}};
  }
  const std::string label = group.label;
  return {{label, std::move(group)}};
}

void Connectivity::resolveWires() {
  for (std::size_t i = 0; i < m_block.wires.size(); ++i) resolveWire(i);
}

void Connectivity::resolveWire(std::size_t wire) {
  const Wire& written = m_block.wires[wire];
  const auto index = static_cast<int>(wire);
  const std::string pointer = fmt::format("/pipeline/wires/{}", wire);
  const std::vector<Repair> removal = {{"Remove the wire", RemoveWire{written, index}}};
  const auto replaceWith = [&](const Wire& newWire) -> Edit {
    return EditGroup{"Change the wire", {RemoveWire{written, index}, AddWire{newWire, index}}};
  };
  const Source source =
      resolveSource(written.from, {pointer + "/0", written.from.node, written.from.port}, removal, [&](Endpoint from) {
        return replaceWith({std::move(from), written.to});
      });

  const Spot spot = {pointer + "/1", written.to.node, written.to.port};
  const auto replaceTarget = [&](Endpoint to) { return replaceWith({written.from, std::move(to)}); };
  const auto node = m_nodes.find(written.to.node);
  if (node == m_nodes.end() || node->second.kind != Source::Kind::Op)
    return reportUnknownNode(written.to, "an op", spot, removal, replaceTarget);
  const std::size_t op = node->second.index;
  if (source.kind == Source::Kind::Op) m_producers[op].push_back({source.index, wire});
  if (!m_operations[op]) return;
  const auto port =
      resolvePort(m_block.ops[op], written.to.port, m_operations[op]->inputs, "input", spot, removal, replaceTarget);
  if (!port) {
    // The port that this wire was meant for is not also reported as unconnected.
    for (Source& unfed : m_sources[op])
      if (unfed.kind == Source::Kind::None) unfed.kind = Source::Kind::Broken;
    return;
  }
  const auto slot = static_cast<std::size_t>(*port);
  if (const int first = m_wireOfPort[op][slot]; first >= 0) {
    m_sink
        .error("input-taken", spot,
               fmt::format("{} is already connected to {}, so {} cannot be connected too. Remove one of the wires.",
                           toString(written.to), toString(m_block.wires[static_cast<std::size_t>(first)].from),
                           toString(written.from)))
        .repairs = removal;
    return;
  }
  m_wireOfPort[op][slot] = index;
  m_sources[op][slot] = source;
}

Source Connectivity::resolveSource(const Endpoint& from, const Spot& spot, const std::vector<Repair>& removal,
                                   const std::function<Edit(Endpoint)>& replace) {
  const auto node = m_nodes.find(from.node);
  if (node == m_nodes.end() || node->second.isOutput) {
    reportUnknownNode(from, fmt::format("an op or a {} input", m_what), spot, removal, replace);
    return {Source::Kind::Broken};
  }
  Source source = {node->second.kind, node->second.index, 0};
  bool isBroken = false;
  if (source.kind == Source::Kind::Input) {
    if (!from.port.empty()) {
      m_sink
          .error("unknown-port", spot,
                 fmt::format("{} is a {} input, which has no port {}.", from.node, m_what, quoted(from.port)))
          .repairs.push_back({"Read " + from.node, replace({from.node, {}})});
      isBroken = true;
    }
  } else if (const OperationPointer& operation = m_operations[source.index]) {
    const auto port =
        resolvePort(m_block.ops[source.index], from.port, operation->outputs, "output", spot, removal, replace);
    isBroken = !port;
    source.port = port.value_or(0);
  } else {
    source.port = -1;
  }
  markUsed(source);
  if (isBroken) source.kind = Source::Kind::Broken;
  return source;
}

std::optional<int> Connectivity::resolvePort(const DocumentOp& op, const std::string& port,
                                             const std::vector<Port>& ports, std::string_view kind, const Spot& spot,
                                             const std::vector<Repair>& removal,
                                             const std::function<Edit(Endpoint)>& replace) {
  const std::vector<std::string> names = namesOf(ports);
  if (const auto found = std::ranges::find(names, port); found != names.end())
    return static_cast<int>(found - names.begin());
  const std::string near = port.empty() || names.size() == 1 ? names.front() : m_sink.suggest(port, names);
  const std::string found = port.empty()
                                ? fmt::format("{} ({}) is used without the name of an {}", op.id, op.operation, kind)
                                : fmt::format("{} ({}) has no {} {}", op.id, op.operation, kind, quoted(port));
  Diagnostic& diagnostic = m_sink.error("unknown-port", spot,
                                        fmt::format("{}; it has {}{}", found, fmt::join(names, ", "),
                                                    near.empty() ? "." : ". Did you mean " + op.id + "." + near + "?"));
  if (!near.empty()) diagnostic.repairs.push_back({fmt::format("Use {}.{}", op.id, near), replace({op.id, near})});
  diagnostic.repairs.insert(diagnostic.repairs.end(), removal.begin(), removal.end());
  return std::nullopt;
}

void Connectivity::reportUnknownNode(const Endpoint& endpoint, std::string_view expected, const Spot& spot,
                                     const std::vector<Repair>& removal, const std::function<Edit(Endpoint)>& replace) {
  const auto known = m_nodes.find(endpoint.node);
  if (known != m_nodes.end()) {
    m_sink
        .error("unknown-node", spot,
               fmt::format("{} is a {} {}; expected {}.", quoted(endpoint.node), m_what,
                           known->second.isOutput ? "output" : "input", expected))
        .repairs = removal;
    return;
  }
  const std::string near = m_sink.suggest(endpoint.node, m_readableIds);
  Diagnostic& diagnostic =
      m_sink.error("unknown-node", spot,
                   fmt::format("There is no {}; expected {}{}", quoted(endpoint.node), expected, didYouMean(near)));
  if (!near.empty()) diagnostic.repairs.push_back({fmt::format("Use {}", near), replace({near, endpoint.port})});
  diagnostic.repairs.insert(diagnostic.repairs.end(), removal.begin(), removal.end());
}

void Connectivity::resolveOutputs() {
  for (std::size_t i = 0; i < m_block.outputs.size(); ++i) {
    const DocumentOutput& output = m_block.outputs[i];
    m_outputSources.emplace_back();
    Source& source = m_outputSources.back();
    if (isRawItem(output)) continue;
    const auto index = static_cast<int>(i);
    const std::string pointer = fmt::format("/pipeline/outputs/{}", i);
    const std::vector<Repair> removal = {{"Remove the output", RemoveOutput{output.id, index}}};
    if (toString(output.from).empty()) {
      if (!output.extra.contains("from"))
        m_sink
            .error("missing-field", {pointer, output.id, {}},
                   fmt::format("Output {} has no \"from\"; expected a port such as \"fc2.y\".", output.id))
            .repairs = removal;
      continue;
    }
    const auto replace = [&](Endpoint from) -> Edit {
      DocumentOutput changed = output;
      changed.from = std::move(from);
      return EditGroup{"Change output " + output.id, {RemoveOutput{output.id, index}, AddOutput{changed, index}}};
    };
    source = resolveSource(output.from, {pointer + "/from", output.id, {}}, removal, replace);
    if (source.kind == Source::Kind::Input)
      m_sink
          .error("output-is-input", {pointer + "/from", output.id, {}},
                 fmt::format("Output {} is connected to {} input {}; expected the result of an op.", output.id, m_what,
                             output.from.node))
          .repairs = removal;
  }
}

void Connectivity::markUsed(const Source& source) {
  if (source.kind == Source::Kind::Input) m_isInputUsed[source.index] = true;
  // A wire with a wrong port, or from an op of unknown type, may have meant the main output.
  if (source.kind == Source::Kind::Op && source.port <= 0) m_isMainOutputUsed[source.index] = true;
}

// Kahn's algorithm with the smallest document position first.
void Connectivity::sortOps() {
  const std::size_t numOps = m_producers.size();
  std::vector<std::vector<std::size_t>> readers(numOps);
  std::vector<std::size_t> numOpen(numOps);
  for (std::size_t op = 0; op < numOps; ++op) {
    numOpen[op] = m_producers[op].size();
    for (const Producer& producer : m_producers[op]) readers[producer.op].push_back(op);
  }
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t op = 0; op < numOps; ++op)
    if (numOpen[op] == 0) ready.push(op);
  std::vector<bool> isSorted(numOps);
  while (!ready.empty()) {
    const std::size_t op = ready.top();
    ready.pop();
    isSorted[op] = true;
    m_order.push_back(op);
    for (const std::size_t reader : readers[op])
      if (--numOpen[reader] == 0) ready.push(reader);
  }
  if (m_order.size() < numOps) reportCycles(isSorted);
}

// Every op left over has a producer left over: following these must come back to an op seen before.
void Connectivity::reportCycles(const std::vector<bool>& isSorted) {
  std::vector<int> walkOf(isSorted.size(), -1);
  for (std::size_t start = 0; start < isSorted.size(); ++start) {
    std::vector<std::size_t> path;
    std::size_t op = start;
    while (!isSorted[op] && walkOf[op] < 0) {
      walkOf[op] = static_cast<int>(start);
      path.push_back(op);
      op = std::ranges::find_if(m_producers[op], [&](const Producer& p) { return !isSorted[p.op]; })->op;
    }
    if (path.empty() || walkOf[op] != static_cast<int>(start)) continue;
    std::vector<std::size_t> cycle(std::ranges::find(path, op), path.end());
    std::ranges::reverse(cycle);
    std::rotate(cycle.begin(), std::ranges::min_element(cycle), cycle.end());
    reportCycle(cycle);
  }
}

void Connectivity::reportCycle(const std::vector<std::size_t>& cycle) {
  std::vector<std::string> ids;
  std::size_t last = 0;  // the wire written last is the one that closed the cycle
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    ids.push_back(m_block.ops[cycle[i]].id);
    const std::size_t reader = cycle[(i + 1) % cycle.size()];
    for (const Producer& producer : m_producers[reader])
      if (producer.op == cycle[i]) last = std::max(last, producer.wire);
  }
  const Wire& wire = m_block.wires[last];
  m_sink
      .error("cycle", {fmt::format("/pipeline/wires/{}", last), ids.front(), {}},
             fmt::format("These ops form a cycle: {} -> {}. A {} must have no cycles; remove one of the wires.",
                         fmt::join(ids, " -> "), ids.front(), m_what))
      .repairs.push_back({fmt::format("Remove the wire from {} to {}", toString(wire.from), toString(wire.to)),
                          RemoveWire{wire, static_cast<int>(last)}});
}

}  // namespace fuseline
