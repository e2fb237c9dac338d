// Appearance of each node on the canvas.
// SPDX-License-Identifier: Apache-2.0
#include "ui/canvas/node_look.h"

#include "core/document/block_operation.h"
#include "core/edit/links.h"
#include "core/edit/port_values.h"
#include "core/lowering/document_operation.h"
#include "core/lowering/first_layers.h"
#include "core/ops/external.h"
#include "ui/canvas/blocks/block_inside.h"
#include "ui/canvas/metrics.h"
#include "ui/theme/format.h"
#include "ui/widgets/translated.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

namespace fuseline::ui {

namespace {

/// value: nullptr where it could not be inferred.
QString specText(const Value* value) {
  return value ? QStringLiteral("%1 · %2").arg(formatSpec(value->spec), formatByteCount(value->spec.bytes()))
               : translated("shape unknown");
}

std::optional<DType> dtypeOf(const Value* value) { return value ? std::optional(value->spec.dtype) : std::nullopt; }

QString portTip(const QString& name, const QString& declared, const QString& actual) {
  const QString shape = declared.isEmpty() ? QString() : QStringLiteral(" %1").arg(declared);
  return QStringLiteral("<b>%1</b>%2<br>%3").arg(name.toHtmlEscaped(), shape.toHtmlEscaped(), actual.toHtmlEscaped());
}

using ValueAt = std::function<const Value*(const Endpoint&)>;

/// The looks of declared ports. In a large pipeline most ports share their tip with others, so that each is made once.
class PortLooks {
 public:
  PortLook of(const Port& port, std::size_t index, bool isWired, const Value* value) {
    return {.name = port.name,
            .tip = tipOf(port, isWired, value),
            .dtype = isWired ? dtypeOf(value) : std::nullopt,
            .isNamed = index > 0};
  }

 private:
  const QString& tipOf(const Port& port, bool isWired, const Value* value) {
    const std::string tensor = !isWired ? "-" : value ? toString(value->spec) : "?";
    const auto [tip, isNew] = m_tips.try_emplace(port.name + '\n' + port.shape + '\n' + tensor);
    if (isNew)
      tip->second = portTip(toQt(port.name), toQt(port.shape), isWired ? specText(value) : translated("not connected"));
    return tip->second;
  }

  std::unordered_map<std::string, QString> m_tips;
};

/// Which output each input reads, and which outputs are read: found once for all nodes.
struct Wiring {
  std::map<Endpoint, Endpoint> sources;
  std::set<Endpoint> read;
};

/// isWanted: of which nodes; others may be left out.
template <class IsWanted>
Wiring wiringOf(const PipelineDocument& document, const IsWanted& isWanted) {
  Wiring wiring;
  for (const Wire& wire : document.wires()) {
    if (isWanted(wire.to.node)) wiring.sources.emplace(wire.to, wire.from);
    if (isWanted(wire.from.node)) wiring.read.insert(wire.from);
  }
  for (const DocumentOutput& output : document.outputs())
    if (!output.from.node.empty() && isWanted(output.from.node)) wiring.read.insert(output.from);
  return wiring;
}

/// Ports that only wires name: all of an op that this version does not know, and those that an op has no longer. So the
/// wires can be seen and removed.
void addWiredPorts(NodeLook& look, const Wiring& wiring, const QString& tip) {
  const auto add = [&](std::vector<PortLook>& ports, const std::string& name) {
    if (std::ranges::find(ports, name, &PortLook::name) != ports.end()) return;
    ports.push_back({.name = name, .tip = tip.arg(toQt(name).toHtmlEscaped()), .isNamed = !ports.empty()});
  };
  const Endpoint first{look.id, {}};
  for (auto i = wiring.sources.lower_bound(first); i != wiring.sources.end() && i->first.node == look.id; ++i)
    add(look.inputs, i->first.port);
  for (auto i = wiring.read.lower_bound(first); i != wiring.read.end() && i->node == look.id; ++i)
    add(look.outputs, i->port);
}

void addDeclaredPorts(NodeLook& look, const FusibleOperation& operation, const Wiring& wiring, const ValueAt& valueAt,
                      PortLooks& ports) {
  for (std::size_t i = 0; i < operation.inputs.size(); ++i) {
    const auto source = wiring.sources.find({look.id, operation.inputs[i].name});
    const bool isWired = source != wiring.sources.end();
    look.inputs.push_back(ports.of(operation.inputs[i], i, isWired, isWired ? valueAt(source->second) : nullptr));
  }
  for (std::size_t i = 0; i < operation.outputs.size(); ++i)
    look.outputs.push_back(ports.of(operation.outputs[i], i, true, valueAt({look.id, operation.outputs[i].name})));
}

/// A bypassed op says so, and an instance that is a nested Sequential: fusions stop at its border.
QString subtitleOf(const DocumentOp& op) {
  const auto sequential = op.attributes.find(kSequentialAttribute);
  const bool isSequential = !blockNameOf(op).empty() && sequential != op.attributes.end() && *sequential == Json(true);
  if (op.isBypassed()) return translated("%1 · bypassed").arg(toQt(op.id));
  return isSequential ? translated("%1 · Sequential").arg(toQt(op.id)) : toQt(op.id);
}

/// The symbol `layers` bypasses the layers from that number on.
std::optional<std::int64_t> numLayersUsed(const PipelineDocument& document) {
  const Json& symbols = document.symbols();
  const auto layers = symbols.is_object() ? symbols.find(kLayersSymbol) : symbols.end();
  return layers != symbols.end() && layers->is_number_integer() ? std::optional(layers->get<std::int64_t>())
                                                                : std::nullopt;
}

/// Drawn as if it were bypassed.
void showLeftOut(NodeLook& look, const DocumentOp& op, const PipelineDocument& document) {
  const std::int64_t layer = look.isBlock ? layerOf(op) : -1;
  const auto used = layer < 0 ? std::nullopt : numLayersUsed(document);
  if (!used || *used < 1 || layer < *used) return;
  look.isBypassed = true;
  look.subtitle = translated("%1 · not executed").arg(toQt(op.id));
  look.tip = translated("<br>Not executed: the symbol layers is %1.").arg(*used);
}

NodeLook opLook(const DocumentOp& op, const PipelineDocument& document, const Wiring& wiring, const ValueAt& valueAt,
                PortLooks& ports) {
  const std::string_view block = blockNameOf(op);
  NodeLook look{.id = op.id, .kind = NodeKind::Op, .subtitle = subtitleOf(op)};
  look.isBypassed = op.isBypassed();
  look.title = toQt(block.empty() ? std::string_view(op.operation) : block);
  const OperationPointer operation = operationOf(document, op);
  look.isUnknown = operation == nullptr;
  look.isBlock = !block.empty() && document.findBlock(block);
  look.isNotRun = operation && isExternal(*operation);
  if (look.isNotRun && !look.isBypassed) look.subtitle = translated("%1 · not executed").arg(toQt(op.id));
  showLeftOut(look, op, document);
  if (operation) {
    look.category = operation->category;
    addDeclaredPorts(look, *operation, wiring, valueAt, ports);
    addWiredPorts(look, wiring, translated("<b>%1</b><br>The op does not have this port. Move or remove the wire."));
  } else {
    look.tip = translated("Unknown op %1. The file keeps it unchanged, but the pipeline cannot run.")
                   .arg(toQt(op.operation).toHtmlEscaped());
    addWiredPorts(look, wiring, QStringLiteral("%1"));
  }
  return look;
}

NodeLook inputLook(const DocumentInput& input, const ValueAt& valueAt) {
  const Value* value = valueAt({.node = input.id});
  NodeLook look{.id = input.id, .kind = NodeKind::Input, .title = toQt(input.id), .subtitle = translated("input")};
  look.tip = portTip(translated("Input %1").arg(toQt(input.id)), QString(), specText(value));
  look.outputs.push_back({.name = "", .tip = look.tip, .dtype = dtypeOf(value)});
  return look;
}

NodeLook outputLook(const DocumentOutput& output, const ValueAt& valueAt) {
  const Value* value = valueAt(output.from);
  const QString spec = output.from.node.empty() ? translated("not connected") : specText(value);
  NodeLook look{.id = output.id, .kind = NodeKind::Output, .title = toQt(output.id), .subtitle = translated("output")};
  look.tip = portTip(translated("Output %1").arg(toQt(output.id)), QString(), spec);
  look.inputs.push_back({.name = "", .tip = look.tip, .dtype = dtypeOf(value)});
  return look;
}

void mark(NodeLook* look, const Diagnostic& diagnostic) {
  if (!look->worst || diagnostic.severity < *look->worst) look->worst = diagnostic.severity;
  const QString line = QStringLiteral("<br><br><b>%1:</b> %2")
                           .arg(toQt(severityName(diagnostic.severity)), toQt(diagnostic.message).toHtmlEscaped());
  if (look->tip.contains(line)) return;
  look->tip += line;
  look->problems += look->problems.isEmpty() ? line.mid(QStringLiteral("<br><br>").size()) : line;
}

/// Only the first node of an id is marked.
void markAll(std::vector<NodeLook>& looks, const std::vector<Diagnostic>& fileProblems,
             const std::vector<Diagnostic>& problems) {
  if (fileProblems.empty() && problems.empty()) return;
  std::unordered_map<std::string_view, NodeLook*> byId;
  for (NodeLook& look : looks) byId.try_emplace(look.id, &look);
  for (const auto* list : {&fileProblems, &problems})
    for (const Diagnostic& problem : *list)
      if (const auto look = byId.find(problem.node); look != byId.end()) mark(look->second, problem);
}

}  // namespace

QSizeF NodeLook::size() const {
  if (inside) return inside->size;
  if (kind != NodeKind::Op) return {kEndWidthPx, kEndHeightPx};
  const auto numRows = std::max({inputs.size(), outputs.size(), std::size_t{1}}) - 1;
  return {kNodeWidthPx, kNodeHeightPx + static_cast<double>(numRows) * kPortPitchPx};
}

std::vector<NodeLook> nodeLooks(const PipelineDocument& document, const Analysis& analysis,
                                const std::vector<Diagnostic>& fileProblems) {
  std::vector<NodeLook> looks;
  const PortValues values(analysis.graph(), analysis.documentGraph());
  PortLooks ports;
  const Wiring wiring = wiringOf(document, [](const std::string&) { return true; });
  const ValueAt valueAt = [&](const Endpoint& endpoint) { return values.at(endpoint); };
  for (const DocumentInput& input : document.inputs()) looks.push_back(inputLook(input, valueAt));
  for (const DocumentOp& op : document.ops()) looks.push_back(opLook(op, document, wiring, valueAt, ports));
  for (const DocumentOutput& output : document.outputs()) looks.push_back(outputLook(output, valueAt));
  markAll(looks, fileProblems, analysis.lowered.diagnostics);
  return looks;
}

std::vector<NodeLook> looksOf(const std::set<std::string>& nodes, const PipelineDocument& document,
                              const Analysis& analysis, const std::vector<Diagnostic>& fileProblems) {
  std::vector<NodeLook> looks;
  PortLooks ports;
  const Wiring wiring = wiringOf(document, [&](const std::string& id) { return nodes.contains(id); });
  const ValueAt valueAt = [&](const Endpoint& endpoint) { return fuseline::valueAt(analysis.graph(), endpoint); };
  for (const DocumentInput& input : document.inputs())
    if (nodes.contains(input.id)) looks.push_back(inputLook(input, valueAt));
  for (const DocumentOp& op : document.ops())
    if (nodes.contains(op.id)) looks.push_back(opLook(op, document, wiring, valueAt, ports));
  for (const DocumentOutput& output : document.outputs())
    if (nodes.contains(output.id)) looks.push_back(outputLook(output, valueAt));
  markAll(looks, fileProblems, analysis.lowered.diagnostics);
  return looks;
}

}  // namespace fuseline::ui
