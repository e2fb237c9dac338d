// Collects what is known of each op, and lists the ops.
// SPDX-License-Identifier: Apache-2.0
#include "ui/outline/outline.h"

#include "core/edit/links.h"
#include "core/edit/port_values.h"
#include "core/edit/running_order.h"
#include "core/lowering/document_operation.h"
#include "ui/problems/problems_model.h"
#include "ui/session/session.h"
#include "ui/theme/format.h"
#include "ui/widgets/translated.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

namespace fuseline::ui {

namespace {

/// Facts from the analysis and the run about a place.
struct PlaceFacts {
  QStringList inputs;
  QStringList forward, backward;
  double timeNs = 0;
};
using Facts = std::map<std::string, PlaceFacts>;

/// The path of a node and those of the instances around it.
std::vector<std::string> placesOf(const Node& node) {
  std::vector<std::string> places = {node.path};
  while (places.back().size() > node.owner.size()) {
    const std::size_t dot = places.back().rfind('.');
    if (dot == std::string::npos) break;
    places.push_back(places.back().substr(0, dot));
  }
  return places;
}

/// Adds the inputs from outside of each place around the node.
void addInputs(Facts& facts, std::set<std::pair<std::string, ValueId>>& seen, const Graph& graph, const Node& node) {
  for (const ValueId id : node.inputs) {
    const Value& value = graph.value(id);
    for (const std::string& place : placesOf(node))
      if ((value.producer < 0 || !graph.node(value.producer).isAt(place)) && seen.emplace(place, id).second)
        facts[place].inputs.append(formatSpec(value.spec));
  }
}

void addFusions(Facts& facts, const Graph& graph, const std::vector<FusedOperation>& entries,
                QStringList PlaceFacts::*list, const std::function<bool(const FusedOperation&)>& isAsked) {
  for (const FusedOperation& entry : entries) {
    if (!entry.isFused() || !isAsked(entry)) continue;
    const QString name = toQt(entry.rule->name);
    for (const NodeId id : entry.nodes)
      for (const std::string& place : placesOf(graph.node(id)))
        if (QStringList& names = facts[place].*list; !names.contains(name)) names.append(name);
  }
}

void addTimes(Facts& facts, const Graph& graph, const RunRecord& run) {
  const VariantRecord* unfused = run.variant("unfused");
  if (!unfused) return;
  std::map<std::string, const Node*> nodes;
  for (const Node& node : graph.nodes()) nodes.emplace(node.id, &node);
  for (const StepRecord& step : unfused->steps) {
    const auto node = step.ops.empty() ? nodes.end() : nodes.find(step.ops.front());
    if (node == nodes.end()) continue;
    for (const std::string& place : placesOf(*node->second)) facts[place].timeNs += summarize(step.samplesNs).median;
  }
}

/// only: the op of the pipeline whose places are asked for; empty: all.
Facts factsOf(const Analysis& analysis, const RunRecord* run, std::string_view only) {
  Facts facts;
  const Graph& graph = analysis.graph();
  const auto isAsked = [only](const Node& node) { return only.empty() || node.owner == only; };
  std::set<std::pair<std::string, ValueId>> seen;
  for (const Node& node : graph.nodes()) {
    if (!isAsked(node)) continue;
    for (const std::string& place : placesOf(node)) facts.try_emplace(place);
    addInputs(facts, seen, graph, node);
  }
  const auto isOfAsked = [&](const FusedOperation& entry) {
    return std::ranges::any_of(entry.nodes, [&](NodeId id) { return isAsked(graph.node(id)); });
  };
  addFusions(facts, graph, analysis.report.forward, &PlaceFacts::forward, isOfAsked);
  addFusions(facts, graph, analysis.report.backward, &PlaceFacts::backward, isOfAsked);
  if (run) addTimes(facts, graph, *run);
  return facts;
}

/// Each behind what it reads, else as the document has them; those on a cycle come last.
std::vector<const DocumentOp*> inOrder(const DocumentBlock& block) {
  std::vector<bool> isOrdered(block.ops.size());
  std::vector<const DocumentOp*> ordered;
  for (const std::size_t op : runningOrder(block)) {
    ordered.push_back(&block.ops[op]);
    isOrdered[op] = true;
  }
  for (std::size_t i = 0; i < block.ops.size(); ++i)
    if (!isOrdered[i]) ordered.push_back(&block.ops[i]);
  return ordered;
}

class Outline {
 public:
  /// only: as factsOf().
  Outline(const PipelineDocument& document, const Analysis& analysis, const std::vector<Diagnostic>& fileProblems,
          const RunRecord* run, std::string_view only = {})
      : m_document(document), m_graph(analysis.graph()), m_facts(factsOf(analysis, run, only)) {
    if (only.empty()) m_values.emplace(m_graph);
    for (Diagnostic& problem : mergedProblems(fileProblems, analysis.lowered.diagnostics))
      m_problems[problem.node].push_back(std::move(problem));
  }

  std::vector<OutlineRow> run() && {
    for (const DocumentInput& input : m_document.inputs())
      add(endRow(input.id, translated("Input")), {{.node = input.id}});
    addOps(m_document.pipeline(), -1);
    for (const DocumentOutput& output : m_document.outputs())
      add(endRow(output.id, translated("Output")), {output.from});
    return std::move(m_rows);
  }

  std::vector<OutlineRow> rowsOf(const std::string& node) && {
    if (m_document.findInput(node)) add(endRow(node, translated("Input")), {{.node = node}});
    if (const DocumentOp* op = m_document.findOp(node)) addOp(*op, -1);
    if (const DocumentOutput* output = m_document.findOutput(node))
      add(endRow(node, translated("Output")), {output->from});
    return std::move(m_rows);
  }

 private:
  static OutlineRow endRow(const std::string& id, const QString& operation) {
    return {.place = id, .node = id, .name = toQt(id), .operation = operation};
  }

  void addOps(const DocumentBlock& block, int parent) {
    for (const DocumentOp* op : inOrder(block)) addOp(*op, parent);
  }

  void addOp(const DocumentOp& op, int parent) {
    const OutlineRow* around = parent < 0 ? nullptr : &m_rows[static_cast<std::size_t>(parent)];
    const std::string_view blockName = blockNameOf(op);
    OutlineRow row{.place = around ? around->place + "." + op.id : op.id,
                   .node = around ? around->node : op.id,
                   .name = toQt(op.id),
                   .operation = toQt(blockName.empty() ? std::string_view(op.operation) : blockName)};
    row.isBypassed = op.isBypassed();
    row.parent = parent;
    // An instance that was not lowered has no parts, so endless or excessive nesting ends here.
    const DocumentBlock* block = m_facts.contains(row.place) ? m_document.findBlock(blockName) : nullptr;
    const int index = add(std::move(row), outputsOf(op, row.place));
    if (block) addOps(*block, index);
  }

  std::vector<Endpoint> outputsOf(const DocumentOp& op, const std::string& place) const {
    std::vector<Endpoint> outputs;
    if (const OperationPointer operation = operationOf(m_document, op))
      for (const Port& port : operation->outputs) outputs.push_back({place, port.name});
    return outputs;
  }

  int add(OutlineRow row, const std::vector<Endpoint>& makes) {
    addOutputs(row, makes);
    if (const auto found = m_facts.find(row.place); found != m_facts.end()) {
      row.inputs = found->second.inputs;
      row.forward = found->second.forward.join(QStringLiteral(", "));
      row.backward = found->second.backward.join(QStringLiteral(", "));
      row.timeNs = found->second.timeNs;
    }
    if (row.parent < 0) addProblems(row);
    const int index = static_cast<int>(m_rows.size());
    if (row.parent >= 0) m_rows[static_cast<std::size_t>(row.parent)].parts.push_back(index);
    m_rows.push_back(std::move(row));
    return index;
  }

  void addOutputs(OutlineRow& row, const std::vector<Endpoint>& makes) const {
    for (const Endpoint& output : makes) {
      const Value* value = m_values ? m_values->at(output) : valueAt(m_graph, output);
      if (!value) continue;
      const QString spec = formatSpec(value->spec);
      if (&output == &makes.front())
        row.output = spec;
      else
        row.otherOutputs.append(QStringLiteral("%1: %2").arg(toQt(output.port), spec));
    }
  }

  void addProblems(OutlineRow& row) const {
    const auto found = m_problems.find(row.node);
    if (found == m_problems.end()) return;
    row.worst = found->second.front().severity;
    for (const Diagnostic& problem : found->second)
      row.problems.append(QStringLiteral("%1: %2").arg(toQt(severityName(problem.severity)), toQt(problem.message)));
  }

  const PipelineDocument& m_document;
  const Graph& m_graph;
  std::optional<PortValues> m_values;  // where there are many rows
  const Facts m_facts;
  std::map<std::string, std::vector<Diagnostic>> m_problems;
  std::vector<OutlineRow> m_rows;
};

QString countedProblems(qsizetype count, Severity severity) {
  switch (severity) {
    case Severity::Error: return counted(count, translated("error"), translated("errors"));
    case Severity::Warning: return counted(count, translated("warning"), translated("warnings"));
    case Severity::Note: return counted(count, translated("note"), translated("notes"));
  }
  return {};
}

}  // namespace

std::vector<OutlineRow> outlineOf(const PipelineDocument& document, const Analysis& analysis,
                                  const std::vector<Diagnostic>& fileProblems, const RunRecord* run) {
  return Outline(document, analysis, fileProblems, run).run();
}

namespace {

const RunRecord* shownRun(const Session& session) {
  const std::optional<LastRun>& run = session.results().lastRun();
  return run && !run->isStale ? &run->record : nullptr;
}

}  // namespace

std::vector<OutlineRow> outlineOf(const Session& session) {
  return outlineOf(session.pipeline().document(), *session.plan().analysis(), session.pipeline().problems(),
                   shownRun(session));
}

std::vector<OutlineRow> outlineOf(const Session& session, const std::string& node) {
  return Outline(session.pipeline().document(), *session.plan().analysis(), session.pipeline().problems(),
                 shownRun(session), node)
      .rowsOf(node);
}

QString outputsText(const OutlineRow& row) {
  const QStringList main = row.output.isEmpty() ? QStringList() : QStringList(row.output);
  return (main + row.otherOutputs).join(QStringLiteral(", "));
}

QString problemsText(const OutlineRow& row) {
  if (!row.worst) return {};
  const QString kind = toQt(severityName(*row.worst)) + u':';
  return countedProblems(
      std::ranges::count_if(row.problems, [&](const QString& text) { return text.startsWith(kind); }), *row.worst);
}

QString sentenceOf(const OutlineRow& row) {
  QStringList parts = {row.name, row.operation};
  if (row.isBypassed) parts.append(translated("bypassed"));
  if (!row.inputs.isEmpty()) parts.append(translated("input %1").arg(row.inputs.join(QStringLiteral(", "))));
  if (!outputsText(row).isEmpty()) parts.append(translated("output %1").arg(outputsText(row)));
  if (!row.forward.isEmpty()) parts.append(translated("fused forward in %1").arg(row.forward));
  if (!row.backward.isEmpty()) parts.append(translated("fused backward in %1").arg(row.backward));
  if (row.timeNs > 0) parts.append(translated("%1 unfused").arg(formatDurationNs(row.timeNs)));
  return (parts + row.problems).join(QStringLiteral(", "));
}

}  // namespace fuseline::ui
