// Keeps a plan if the plan of the neighborhood of all changed ops stays the same.
//
// The graph of a document is always made as a whole, so that its problems are all there. Fusing and planning, which
// take most of the time, are local: a window around the ops shows whether an edit of attributes changes the plan.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/incremental_analysis.h"

#include "core/graph/graph_window.h"
#include "core/plan/analysis_stages.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

/// More than any rule looks beyond the ops of its chain: to the consumers of a consumer, and to producers.
constexpr int kHops = 4;
/// Two windows of this size take as long as the graph of most pipelines.
constexpr std::size_t kMostNodes = 400;

bool isSame(const DeviceModel& a, const DeviceModel& b) {
  return a.bandwidthBytesPerSecond == b.bandwidthBytesPerSecond && a.launchSeconds == b.launchSeconds &&
         a.source == b.source;
}

/// Measured gains are shared, so that equal ones are the same objects.
bool isSame(const GainModel& a, const GainModel& b) {
  return a.decides == b.decides && a.measured == b.measured && isSame(a.device, b.device);
}

/// Those around the changed ops, and all of the chains there, which may be long.
std::vector<NodeId> windowNodes(const Analysis& analysis, const std::vector<NodeId>& changed) {
  const Graph& graph = analysis.graph();
  std::vector<NodeId> nodes = nodesAround(graph, changed, kHops);
  std::vector<bool> isNear(graph.nodes().size(), false);
  for (const NodeId id : nodes) isNear[static_cast<std::size_t>(id)] = true;
  for (const Attempt& attempt : analysis.report.attempts)
    if (std::ranges::any_of(attempt.nodes, [&](NodeId id) { return isNear[static_cast<std::size_t>(id)]; }))
      nodes.insert(nodes.end(), attempt.nodes.begin(), attempt.nodes.end());
  return nodesAround(graph, nodes, kHops);
}

std::string planText(const Graph& graph, const FusionReport& report) {
  const Plan plan = makePlan(graph, report);
  std::string text = toString(plan);
  for (const Step& step : plan.steps) text += fmt::format("{} {} {}\n", step.flops, step.bytesRead, step.bytesWritten);
  return text;
}

/// Everything that fusing and planning make of a graph.
std::string outcomeOf(const Graph& graph, const FusionOptions& fusion) {
  const Result<FusionReport> report = fuse(graph, fusion);
  if (!report) return {};
  return toJson(graph, *report).dump() + planText(graph, unfused(graph)) + planText(graph, *report);
}

/// Does the plan of the earlier graph hold for the later one? fusion: the options of both.
bool isPlanKept(const Analysis& earlier, const Analysis& later, const FusionOptions& fusion) {
  const std::optional<std::vector<NodeId>> changed = changedAttributes(earlier.graph(), later.graph());
  if (!changed) return false;
  if (changed->empty()) return true;
  if (changed->size() > kMostNodes) return false;
  const std::vector<NodeId> nodes = windowNodes(earlier, *changed);
  return nodes.size() <= kMostNodes &&
         outcomeOf(windowOf(earlier.graph(), nodes), fusion) == outcomeOf(windowOf(later.graph(), nodes), fusion);
}

}  // namespace

std::shared_ptr<const Analysis> IncrementalAnalysis::next(PipelineDocument document, const AnalysisOptions& options,
                                                          std::uint64_t settings) {
  const bool isComparable = m_last && isFor(options, settings);
  if (isComparable && meansTheSame(m_document, document)) return m_last;
  Analysis analysis = graphStage(document, options);
  const FusionOptions fusion = fusionOptions(document, options, analysis);
  const bool isLocal = isComparable && m_last->isRunnable() && !hasErrors(analysis.lowered.diagnostics) &&
                       m_document.fusion() == document.fusion() && m_document.recipe() == document.recipe() &&
                       isPlanKept(*m_last, analysis, fusion);
  if (isLocal)
    planStageFrom(*m_last, fusion, analysis);
  else
    planStage(fusion, analysis);
  m_numComplete += isLocal ? 0 : 1;
  m_document = std::move(document);
  m_gains = options.gains;
  m_settings = settings;
  m_last = std::make_shared<const Analysis>(std::move(analysis));
  return m_last;
}

bool IncrementalAnalysis::isFor(const AnalysisOptions& options, std::uint64_t settings) const {
  return settings == m_settings && isSame(options.gains, m_gains);
}

}  // namespace fuseline
