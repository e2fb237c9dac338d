// Keeps a plan if the plan of the neighborhood of all changed ops stays the same.
//
// A window around the ops shows whether an edit of attributes changes the plan, and, where the edits are known, whether
// it changes more of the graph than these attributes: the window is lowered, fused and planned before and after.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/incremental_analysis.h"

#include "core/edit/apply_edit.h"
#include "core/edit/document_window.h"
#include "core/edit/edit_extent.h"
#include "core/graph/graph_match.h"
#include "core/graph/graph_window.h"
#include "core/plan/analysis_stages.h"
#include "core/plan/incremental/spliced_report.h"
#include "core/plan/savings/planned_savings.h"
#include "core/plan/savings/window_shapes.h"

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
/// Savings that are kept. A pipeline has some dozens, and every edit of an attribute adds a few.
constexpr std::size_t kMostSavings = 20'000;

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

std::string planText(const Graph& graph, const FusionReport& report, const PlanOptions& options) {
  const Plan plan = makePlan(graph, report, options);
  std::string text = toString(plan);
  for (const Step& step : plan.steps) text += fmt::format("{} {} {}\n", step.flops, step.bytesRead, step.bytesWritten);
  return text;
}

/// Everything that fusing and planning make of a graph.
std::string outcomeOf(const Graph& graph, const FusionOptions& fusion, const PlanOptions& plan, KnownSavings& known) {
  const Result<FusionReport> report = fuseByPlans(graph, fusion, plan, &known);
  if (!report) return {};
  return toJson(graph, *report).dump() + planText(graph, unfused(graph), plan) + planText(graph, *report, plan);
}

/// Does the plan of the earlier graph hold for the later one, which differs at these nodes? fusion: the options of
/// both.
bool isPlanKept(const Analysis& earlier, const Analysis& later, const std::vector<NodeId>& changed,
                const FusionOptions& fusion, const PlanOptions& plan, KnownSavings& known) {
  if (changed.empty()) return true;
  if (changed.size() > kMostNodes) return false;
  const std::vector<NodeId> nodes = windowNodes(earlier, changed);
  return nodes.size() <= kMostNodes && outcomeOf(windowOf(earlier.graph(), nodes), fusion, plan, known) ==
                                           outcomeOf(windowOf(later.graph(), nodes), fusion, plan, known);
}

bool holdsText(const Json& value) {
  return value.is_string() || (value.is_structured() && std::any_of(value.begin(), value.end(), holdsText));
}

/// May the op use other symbols than before? Which ones are used is a question to the whole document.
bool mayUseOtherSymbols(const DocumentOp& before, const DocumentOp& after) {
  const auto isOther = [](const Json& one, const Json& other) {
    for (const auto& [name, value] : one.items())
      if (holdsText(value) && (!other.contains(name) || other[name] != value)) return true;
    return false;
  };
  return isOther(before.attributes, after.attributes) || isOther(after.attributes, before.attributes);
}

bool isSame(const Diagnostic& a, const Diagnostic& b) {
  return a.severity == b.severity && a.code == b.code && a.node == b.node && a.port == b.port &&
         a.pointer == b.pointer && a.message == b.message &&
         std::ranges::equal(a.repairs, b.repairs, {}, &Repair::label, &Repair::label);
}

bool areSame(const std::vector<Diagnostic>& a, const std::vector<Diagnostic>& b) {
  return std::ranges::equal(a, b, [](const Diagnostic& one, const Diagnostic& other) { return isSame(one, other); });
}

/// The changed nodes of the later window; nullopt: more than attributes of the ops has changed, or problems.
std::optional<std::vector<Node>> changedNodes(const PipelineDocument& before, const PipelineDocument& after,
                                              const std::set<std::string>& ops, const AnalysisOptions& options) {
  const Analysis earlier = graphStage(before, options);
  const Analysis later = graphStage(after, options);
  const std::vector<Diagnostic>& problems = later.lowered.diagnostics;
  const bool isAboutThem =
      std::ranges::any_of(problems, [&](const Diagnostic& problem) { return ops.contains(problem.node); });
  if (hasErrors(problems) || isAboutThem || !areSame(earlier.lowered.diagnostics, problems)) return std::nullopt;
  const std::optional<std::vector<NodeId>> changed = changedAttributes(earlier.graph(), later.graph());
  if (!changed) return std::nullopt;
  std::vector<Node> nodes;
  for (const NodeId id : *changed) nodes.push_back(later.graph().node(id));
  return nodes;
}

/// Would backward read the same tensors with the other attributes?
bool keepsContext(const Graph& graph, NodeId id, const Node& other) {
  const Node& node = graph.node(id);
  if (!node.takesPartInBackward()) return true;
  const std::vector<TensorSpec> inputs = graph.inputSpecs(id);
  const OperationContext context = other.operation->saveContext({other.attributes, inputs, node.needs});
  return context.tensors == node.context.tensors && context.state == node.context.state;
}

}  // namespace

std::shared_ptr<const KnownSavings> IncrementalAnalysis::knownSavings() const {
  return m_known ? std::make_shared<const KnownSavings>(*m_known) : nullptr;
}

/// The ops around those whose attributes will be set.
struct IncrementalAnalysis::Surroundings {
  std::set<std::string> ops;
  std::vector<NodeId> nodes;
  PipelineDocument document;
};

std::shared_ptr<const Analysis> IncrementalAnalysis::next(PipelineDocument document, const AnalysisOptions& options,
                                                          std::uint64_t settings, const std::stop_token& stop) {
  const bool isComparable = isFor(options, settings);
  const bool isKept = isComparable && m_pending.empty() && meansTheSame(m_document, document);
  m_document = std::move(document);
  if (isKept) m_changedOps.emplace();
  if (isKept) return m_last;
  std::shared_ptr<const Analysis> analysis =
      keep(analyzed(options, isComparable && hasSameChoices(), stop), options, settings);
  if (!analysis) m_last.reset();  // edits do not lead from its document to this one
  return analysis;
}

std::shared_ptr<const Analysis> IncrementalAnalysis::after(const std::vector<Edit>& edits, const OptionsFor& optionsFor,
                                                           std::uint64_t settings, const std::stop_token& stop) {
  const bool isNext = m_pending.empty();
  m_pending.insert(m_pending.end(), edits.begin(), edits.end());
  const EditExtent extent = extentOf(m_pending);
  const auto surroundings = isNext && !extent.changesMore ? surroundingsOf(extent.attributesOf) : std::nullopt;
  for (const Edit& edit : edits) (void)applyEdit(m_document, edit);
  const AnalysisOptions options = optionsFor(m_document);
  const bool isComparable = isFor(options, settings);
  const bool isOfAttributes = isComparable && !extent.changesMore;
  if (isComparable && extent.isViewOnly()) {
    m_changedOps.emplace();
    m_pending.clear();
    return m_last;
  }
  const bool isPatchable = isOfAttributes && surroundings && options.place.ranks == 1;
  std::optional<Analysis> analysis = isPatchable ? patched(*surroundings, options) : std::nullopt;
  if (!analysis) analysis = analyzed(options, isComparable && hasSameChoices(), stop);
  return keep(std::move(analysis), options, settings);
}

/// nullopt: the whole graph is to be made again.
std::optional<IncrementalAnalysis::Surroundings> IncrementalAnalysis::surroundingsOf(
    const std::set<std::string>& ops) const {
  if (!m_last || !m_last->isRunnable() || ops.empty()) return std::nullopt;
  const Graph& graph = m_last->graph();
  std::vector<NodeId> changed;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id)
    if (ops.contains(graph.node(id).owner)) changed.push_back(id);
  if (changed.empty() || changed.size() > kMostNodes) return std::nullopt;
  std::vector<NodeId> nodes = windowNodes(*m_last, changed);
  if (nodes.size() > kMostNodes) return std::nullopt;
  std::optional<PipelineDocument> window = windowOf(m_document, graph, nodes);
  if (!window) return std::nullopt;
  return Surroundings{ops, std::move(nodes), std::move(*window)};
}

/// The last analysis with the attributes that the document has now; nullopt: more than that may change.
std::optional<Analysis> IncrementalAnalysis::patched(const Surroundings& before, const AnalysisOptions& options) {
  if (m_known->savings.size() > kMostSavings) return std::nullopt;
  const Graph& graph = m_last->graph();
  const std::optional<PipelineDocument> window = windowOf(m_document, graph, before.nodes);
  if (!window) return std::nullopt;
  for (const std::string& id : before.ops) {
    const DocumentOp* op = window->findOp(id);
    if (!op || (!m_document.symbols().empty() && mayUseOtherSymbols(*before.document.findOp(id), *op)))
      return std::nullopt;
  }
  std::optional<std::vector<Node>> changed = changedNodes(before.document, *window, before.ops, options);
  if (!changed) return std::nullopt;
  std::vector<NodeId> ids;
  for (const Node& node : *changed) {
    ids.push_back(graph.findNode(node.id));
    if (ids.back() < 0 || !keepsContext(graph, ids.back(), node)) return std::nullopt;
  }
  Analysis analysis = *m_last;
  for (std::size_t i = 0; i < ids.size(); ++i)
    analysis.lowered.graph = withAttributes(std::move(analysis.lowered.graph), ids[i],
                                            std::move((*changed)[i].attributes), std::move((*changed)[i].operation));
  analysis.lowered.diagnostics.resize(m_numGraphProblems);
  const FusionOptions fusion = fusionOptions(m_document, options, analysis);
  const PlanOptions plan = planOptions(options);
  m_changedOps.reset();
  if (isPlanKept(*m_last, analysis, ids, fusion, plan, *m_known)) {
    addPlanNotes(fusion, analysis);
    if (areSame(analysis.lowered.diagnostics, m_last->lowered.diagnostics)) m_changedOps = before.ops;
  } else {
    planStage(fusion, analysis, plan, m_known.get());
    ++m_numComplete;
  }
  return analysis;
}

/// Those of the document of the last analysis.
bool IncrementalAnalysis::hasSameChoices() const {
  return m_document.fusion() == m_fusion && m_document.recipe() == m_recipe;
}

/// isSimilar: the last analysis is of a document with the same recipe and switches, for the same options.
std::optional<Analysis> IncrementalAnalysis::analyzed(const AnalysisOptions& options, bool isSimilar,
                                                      const std::stop_token& stop) {
  m_changedOps.reset();
  const bool areSavingsKnown = isSimilar && m_known->savings.size() <= kMostSavings;
  const auto known = areSavingsKnown ? m_known : std::make_shared<KnownSavings>();
  Analysis analysis = graphStage(m_document, options);
  const std::size_t numGraphProblems = analysis.lowered.diagnostics.size();
  if (!stop.stop_requested()) addStages(options, isSimilar, stop, *known, analysis);
  if (stop.stop_requested()) return std::nullopt;
  m_known = known;
  m_numGraphProblems = numGraphProblems;
  return analysis;
}

/// As far as it is not stopped.
void IncrementalAnalysis::addStages(const AnalysisOptions& options, bool isSimilar, const std::stop_token& stop,
                                    KnownSavings& known, Analysis& analysis) {
  const FusionOptions fusion = fusionOptions(m_document, options, analysis);
  const bool isComparable = isSimilar && m_last->isRunnable() && !hasErrors(analysis.lowered.diagnostics);
  const auto changed = isComparable ? changedAttributes(m_last->graph(), analysis.graph()) : std::nullopt;
  const PlanOptions plan = planOptions(options);
  if (changed && isPlanKept(*m_last, analysis, *changed, fusion, plan, known))
    return planStageFrom(*m_last, fusion, analysis);
  const bool isOfOneRank = isComparable && options.place.ranks == 1;
  std::optional<FusionReport> report =
      isOfOneRank ? splicedReport(*m_last, analysis.graph(), fusion, plan, known) : std::nullopt;
  if (report) return addPlans(std::move(*report), fusion, analysis, plan, stop);
  planStage(fusion, analysis, plan, &known, stop);
  ++m_numComplete;
}

std::shared_ptr<const Analysis> IncrementalAnalysis::keep(std::optional<Analysis> analysis,
                                                          const AnalysisOptions& options, std::uint64_t settings) {
  if (!analysis) return nullptr;
  m_gains = options.gains;
  m_settings = settings;
  m_fusion = m_document.fusion();
  m_recipe = m_document.recipe();
  m_pending.clear();
  m_last = std::make_shared<const Analysis>(std::move(*analysis));
  return m_last;
}

bool IncrementalAnalysis::isFor(const AnalysisOptions& options, std::uint64_t settings) const {
  return m_last && settings == m_settings && isSame(options.gains, m_gains);
}

}  // namespace fuseline
