// Lowers the pipeline of a run, and gives each op the time of its steps.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/drawing/measured_graph.h"

#include "core/export/drawing/svg_graph.h"
#include "core/graph/instances.h"
#include "core/runtime/measured_pipeline.h"
#include "core/support/text.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

Result<Graph> graphOf(const RunRecord& record) {
  const Result<MeasuredPipeline> measured = measuredPipeline(record);
  if (!measured) return measured.error();
  if (const std::size_t count = measured->document.ops().size(); count > kMostDrawnOps)
    return Error{fmt::format("expected at most {} ops to draw, found {}", kMostDrawnOps, count)};
  LoweredGraph lowered = lower(measured->document, {.pass = measured->pass});
  if (hasErrors(lowered.diagnostics)) return Error{"the pipeline in this run has errors in this version"};
  return std::move(lowered.graph);
}

const VariantRecord* drawnVariant(const RunRecord& record) {
  const VariantRecord* fused = record.variant("fused");
  return fused ? fused : record.variant("unfused");
}

/// An op of a step that the graph has not; empty: there is none.
std::string missingOp(const RunRecord& record, const Graph& graph) {
  for (const VariantRecord& variant : record.variants)
    for (const StepRecord& step : variant.steps)
      for (const std::string& op : step.ops)
        if (graph.findNode(op) < 0) return op;
  return {};
}

double medianNs(const StepRecord& step) {
  return step.samplesNs.empty() || step.isView ? 0.0 : summarize(step.samplesNs).median;
}

Phase phaseOf(const StepRecord& step) { return phaseNamed(step.phase); }

/// "12 %", "0.4 %", "<0.1 %".
std::string percentOf(double share) {
  const double percent = 100.0 * share;
  if (percent < 0.05) return "<0.1 %";
  return fmt::format("{:.{}f} %", percent, percent < 9.95 ? 1 : 0);
}

/// "norm, fc1, act and 3 more": each op of a step has them in its tip.
std::string namesOf(const std::vector<std::string>& ops) {
  constexpr std::size_t kMostNames = 6;
  const std::size_t numNamed = ops.size() <= kMostNames ? ops.size() : kMostNames - 1;
  const std::vector<std::string> named(ops.begin(), ops.begin() + static_cast<std::ptrdiff_t>(numNamed));
  const std::size_t numOthers = ops.size() - numNamed;
  return fmt::format("{}{}", fmt::join(named, ", "), numOthers > 0 ? fmt::format(" and {} more", numOthers) : "");
}

std::vector<NodeId> shownNodes(const Graph& graph) {
  const std::vector<std::string> closed = closedInstances(graph);
  std::map<std::string, NodeId> firstIn;
  std::vector<NodeId> shown;
  for (NodeId id = 0; id < static_cast<NodeId>(closed.size()); ++id) {
    const std::string& path = closed[static_cast<std::size_t>(id)];
    shown.push_back(path.empty() ? id : firstIn.try_emplace(path, id).first->second);
  }
  return shown;
}

}  // namespace

Result<MeasuredGraph> MeasuredGraph::of(const RunRecord& record) {
  const VariantRecord* const variant = drawnVariant(record);
  if (!variant) return Error{"this run has no measured plan"};
  Result<Graph> graph = graphOf(record);
  if (!graph) return graph.error();
  if (const std::string op = missingOp(record, *graph); !op.empty())
    return Error{fmt::format("this version finds no op {} in the pipeline of this run", op)};
  return MeasuredGraph(*variant, std::move(*graph));
}

MeasuredGraph::MeasuredGraph(const VariantRecord& variant, Graph graph)
    : m_variant(&variant), m_graph(std::move(graph)), m_shownAs(shownNodes(m_graph)) {
  m_opNs.fill(std::vector<double>(m_graph.nodes().size(), 0.0));
  for (const StepRecord& step : variant.steps) {
    const double ns = medianNs(step);
    m_sumNs += ns;
    if (step.phase == phaseName(Phase::Optimizer))
      m_optimizerNs += ns;
    else if (step.ops.empty())
      m_quantizingNs += ns;
    for (const NodeId shown : shownOf(step)) {
      double& opTime = opNs(phaseOf(step), shown);
      opTime += ns;
      m_hottestNs = std::max(m_hottestNs, opTime);
    }
  }
}

std::set<NodeId> MeasuredGraph::shownOf(const StepRecord& step) const {
  std::set<NodeId> shown;
  for (const std::string& op : step.ops) shown.insert(m_shownAs[static_cast<std::size_t>(m_graph.findNode(op))]);
  return shown;
}

double& MeasuredGraph::opNs(Phase phase, NodeId node) {
  return m_opNs[static_cast<std::size_t>(phase)][static_cast<std::size_t>(node)];
}

std::vector<DrawnPass> MeasuredGraph::passes() const {
  std::vector<DrawnPass> passes = {passOf(Phase::Forward)};
  if (DrawnPass backward = passOf(Phase::Backward); !backward.boxes.empty()) passes.push_back(std::move(backward));
  return passes;
}

DrawnPass MeasuredGraph::passOf(Phase phase) const {
  DrawnPass pass = drawnPass(m_graph, fusions(phase), phase);
  for (const StepRecord& step : m_variant->steps)
    if (phaseOf(step) == phase) addTimes(step, pass);
  return pass;
}

/// An op with several fused steps in a pass is in the frame of the first.
std::vector<DrawnFusion> MeasuredGraph::fusions(Phase phase) const {
  const FrameKind kind = phase == Phase::Forward ? FrameKind::Forward : FrameKind::Backward;
  std::vector<DrawnFusion> fusions;
  std::set<NodeId> framed;
  for (const StepRecord& step : m_variant->steps) {
    if (phaseOf(step) != phase || step.rule.empty()) continue;
    DrawnFusion fusion{.kind = isJoint(step) ? FrameKind::Joint : kind,
                       .title = step.rule,
                       .figure = figureOf(medianNs(step)),
                       .nodes = nodesOf(step)};
    std::erase_if(fusion.nodes, [&](NodeId node) { return !framed.insert(node).second; });
    if (!fusion.nodes.empty()) fusions.push_back(std::move(fusion));
  }
  return fusions;
}

/// A rule that makes steps of both passes.
bool MeasuredGraph::isJoint(const StepRecord& step) const {
  return std::ranges::any_of(m_variant->steps, [&](const StepRecord& other) {
    return other.rule == step.rule && other.phase != step.phase && other.ops == step.ops;
  });
}

std::vector<NodeId> MeasuredGraph::nodesOf(const StepRecord& step) const {
  std::vector<NodeId> nodes;
  for (const std::string& op : step.ops) nodes.push_back(m_graph.findNode(op));
  if (!nodes.empty()) return nodes;
  // Named after the op: "fc1.quantize_input".
  const NodeId node = m_graph.findNode(step.name.substr(0, step.name.rfind('.')));
  return node < 0 ? nodes : std::vector{node};
}

/// All ops of a fusion have its shade, and its time is shown once, in the title of their frame.
void MeasuredGraph::addTimes(const StepRecord& step, DrawnPass& pass) const {
  for (const NodeId node : shownOf(step)) {
    DrawnBox* const box = pass.boxOf(node);
    if (!box) continue;
    const double ns = m_opNs[static_cast<std::size_t>(pass.phase)][static_cast<std::size_t>(node)];
    if (ns > 0.0) box->heat = ns / m_hottestNs;
    if (step.rule.empty() || box->isInstance)
      box->figure = ns > 0.0 || !step.isView ? figureOf(ns) : "a view: nothing runs";
    if (!box->isInstance) box->tip += "\n" + tipOf(step);
  }
}

std::string MeasuredGraph::figureOf(double ns) const {
  return ns > 0.0 ? formatDuration(ns) + " · " + shareText(ns) : std::string();
}

std::string MeasuredGraph::tipOf(const StepRecord& step) const {
  const double ns = medianNs(step);
  const std::string name = step.rule.empty() ? "step " + step.name : step.rule + " of " + namesOf(step.ops);
  if (step.isView) return name + "\na view: nothing runs";
  if (ns <= 0.0) return name + "\nnot timed";
  return fmt::format("{}\nmedian {}\n{} of the sum of all step medians", name, formatDuration(ns), shareText(ns));
}

std::string MeasuredGraph::hottest() const {
  return fmt::format("{} ({})", formatDuration(m_hottestNs), shareText(m_hottestNs));
}

std::string MeasuredGraph::shareText(double ns) const { return percentOf(m_sumNs > 0.0 ? ns / m_sumNs : 0.0); }

}  // namespace fuseline
