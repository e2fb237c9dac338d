// Compares steps with terms.
// SPDX-License-Identifier: Apache-2.0
#include "ui/timings/run_filter.h"

#include "core/document/block_operation.h"
#include "ui/theme/format.h"
#include "ui/timings/step_category.h"
#include "ui/widgets/translated.h"

#include <algorithm>

namespace fuseline::ui {

namespace {

using Kind = FilterTerm::Kind;

/// Blocks that one of the step's ops is in: those of its instances in the pipeline, and the innermost one.
std::set<std::string> blocksOf(const StepRecord& step, const PipelineDocument& document, const Graph* graph) {
  std::set<std::string> blocks;
  for (const std::string& owner : step.owners)
    if (const DocumentOp* op = document.findOp(owner)) blocks.emplace(blockNameOf(*op));
  for (const std::string& op : step.ops)
    if (const NodeId node = graph ? graph->findNode(op) : NodeId{-1}; node >= 0) blocks.insert(graph->node(node).block);
  blocks.erase(std::string());
  return blocks;
}

bool hasText(const StepRecord& step, const QString& text) {
  const auto holds = [&](const std::string& name) { return toQt(name).contains(text, Qt::CaseInsensitive); };
  return holds(step.name) || holds(step.kernel) || std::ranges::any_of(step.ops, holds);
}

bool meets(const StepRecord& step, const FilterTerm& term, const PipelineDocument& document, const Graph* graph) {
  const std::string value = term.value.toStdString();
  switch (term.kind) {
    case Kind::Op: return std::ranges::count(step.owners, value) > 0 || std::ranges::count(step.ops, value) > 0;
    case Kind::Category: return categoryOf(step, graph) == value;
    case Kind::Pass: return step.phase == value;
    case Kind::Block: return blocksOf(step, document, graph).contains(value);
    case Kind::Text: return hasText(step, term.value);
  }
  return false;
}

template <class See>
void forSteps(const RunRecord& record, const See& see) {
  for (const VariantRecord& variant : record.variants)
    for (const StepRecord& step : variant.steps)
      if (!step.isView) see(step);
}

/// The steps of both plans, as far as terms ask for them.
std::vector<StepRecord> plannedSteps(const Analysis& analysis) {
  std::vector<StepRecord> steps;
  if (!analysis.isRunnable()) return steps;
  for (const Plan* plan : {&analysis.unfusedPlan(), &*analysis.fusedPlan})
    for (const Step& step : plan->steps) {
      if (!step.isLaunched()) continue;
      StepRecord record{.name = step.name, .phase = std::string(phaseName(step.phase)), .kernel = step.kernel};
      for (const NodeId node : step.nodes) {
        record.ops.push_back(analysis.graph().node(node).id);
        record.owners.push_back(analysis.graph().node(node).owner);
      }
      steps.push_back(std::move(record));
    }
  return steps;
}

const Graph* graphOf(const Analysis& analysis) { return analysis.isRunnable() ? &analysis.graph() : nullptr; }

}  // namespace

QString textOf(const FilterTerm& term) {
  static constexpr const char* kNames[] = {"op", "category", "pass", "block", "name"};
  return QStringLiteral("%1: %2").arg(translated(kNames[static_cast<int>(term.kind)]), term.value);
}

const Graph* graphOfRun(const Session& session) {
  const auto& run = session.results().lastRun();
  const Analysis& analysis = *session.plan().analysis();
  return run && !run->isStale && analysis.isRunnable() ? &analysis.graph() : nullptr;
}

RunFilter::RunFilter(Session& session, QObject* parent) : QObject(parent), m_session(session) {
  connect(&session.pipeline(), &OpenPipeline::replaced, this, [this] {
    m_states = {{}};
    m_now = 0;
    Q_EMIT changed();
  });
}

bool RunFilter::has(const FilterTerm& term) const { return std::ranges::count(terms(), term) > 0; }

void RunFilter::enter(std::vector<FilterTerm> terms) {
  if (terms == m_states[m_now]) return;
  m_states.resize(++m_now);
  m_states.push_back(std::move(terms));
  Q_EMIT changed();
}

void RunFilter::add(const FilterTerm& term) {
  std::vector<FilterTerm> next = terms();
  if (!term.value.isEmpty() && !has(term)) next.push_back(term);
  enter(std::move(next));
}

void RunFilter::remove(const FilterTerm& term) {
  std::vector<FilterTerm> next = terms();
  std::erase(next, term);
  enter(std::move(next));
}

void RunFilter::clear() { enter({}); }

void RunFilter::goBack() {
  if (!canGoBack()) return;
  --m_now;
  Q_EMIT changed();
}

void RunFilter::goForward() {
  if (!canGoForward()) return;
  ++m_now;
  Q_EMIT changed();
}

bool RunFilter::keeps(const StepRecord& step, const PipelineDocument& document, const Graph* graph) const {
  return std::ranges::all_of(terms(), [&](const FilterTerm& wanted) {
    return std::ranges::any_of(terms(), [&](const FilterTerm& term) {
      return term.kind == wanted.kind && meets(step, term, document, graph);
    });
  });
}

bool RunFilter::keeps(const StepRecord& step) const {
  return keeps(step, m_session.pipeline().document(), graphOf(*m_session.plan().analysis()));
}

/// A composite's row is kept if one of its basic ops would be.
bool RunFilter::keepsRow(const std::string& name, const std::string& owner, const std::set<std::string>& passes) const {
  if (!isActive()) return true;
  std::vector<std::string> ops;
  if (const Graph* graph = graphOf(*m_session.plan().analysis()))
    for (const Node& node : graph->nodes())
      if (node.owner == owner) ops.push_back(node.id);
  if (ops.empty()) ops.push_back(owner);
  for (const std::string& pass : passes)
    for (const std::string& op : ops)
      if (keeps({.name = name, .phase = pass, .ops = {op}, .owners = {owner}})) return true;
  return false;
}

StepNames RunFilter::keptSteps(const LastRun& run, const Graph* graph) const {
  StepNames names;
  forSteps(run.record, [&](const StepRecord& step) {
    if (keeps(step, run.document, graph)) names.emplace(step.phase, step.name);
  });
  return names;
}

/// Without a timeline: its spans refer to steps by their places.
RunRecord RunFilter::filtered(const LastRun& run, const Graph* graph) const {
  RunRecord record = run.record;
  if (!isActive()) return record;
  for (VariantRecord& variant : record.variants) {
    variant.timeline = {};
    std::erase_if(variant.steps, [&](const StepRecord& step) { return !keeps(step, run.document, graph); });
  }
  return record;
}

std::vector<FilterTerm> RunFilter::choices() const {
  const auto& run = m_session.results().lastRun();
  const PipelineDocument& document = run ? run->document : m_session.pipeline().document();
  const Graph* graph = run ? graphOfRun(m_session) : graphOf(*m_session.plan().analysis());
  std::set<std::string> categories;
  std::set<std::string> blocks;
  std::set<std::string> passes;
  const auto see = [&](const StepRecord& step) {
    categories.insert(categoryOf(step, graph));
    passes.insert(step.phase);
    blocks.merge(blocksOf(step, document, graph));
  };
  if (run)
    forSteps(run->record, see);
  else
    std::ranges::for_each(plannedSteps(*m_session.plan().analysis()), see);
  std::vector<FilterTerm> terms;
  for (const auto& [kind, values] :
       {std::pair(Kind::Category, &categories), std::pair(Kind::Pass, &passes), std::pair(Kind::Block, &blocks)})
    for (const std::string& value : *values)
      if (!value.empty()) terms.push_back({kind, toQt(value)});
  return terms;
}

}  // namespace fuseline::ui
