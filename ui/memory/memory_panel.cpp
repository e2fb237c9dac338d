// The memory dock.
// SPDX-License-Identifier: Apache-2.0
#include "ui/memory/memory_panel.h"

#include "ui/session/large_pipeline.h"
#include "ui/session/plan_steps.h"
#include "ui/timings/run_filter_bar.h"
#include "ui/widgets/seen_refresh.h"

#include <QSplitter>
#include <QVBoxLayout>

namespace fuseline::ui {

namespace {

// In these proportions.
constexpr int kChartPx = 600;
constexpr int kTablePx = 480;

/// As far as filters ask for it.
StepRecord stepOf(const MemoryColumn& column) {
  StepRecord step{.name = column.label.toStdString(),
                  .phase = std::string(phaseName(column.phase)),
                  .kernel = column.kernel,
                  .ops = column.ops};
  for (const QString& owner : column.owners) step.owners.push_back(owner.toStdString());
  return step;
}

}  // namespace

MemoryPanel::MemoryPanel(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_caption(new QLabel(this)),
      m_head(new PaneHead(*m_caption, this)),
      m_empty(new QLabel(this)),
      m_view(new QComboBox(this)),
      m_plan(new QComboBox(this)),
      m_onlyChanging(new QCheckBox(tr("Hide always-resident tensors"), this)),
      m_chart(new MemoryChart(session, theme)),
      m_table(new KeptTable(session, theme)),
      m_layers(new LayerTable(session, this)) {
  auto* body = new QSplitter(Qt::Horizontal, this);
  body->addWidget(m_chart);
  body->addWidget(m_table);
  body->setStretchFactor(0, 1);
  body->setStretchFactor(1, 1);
  body->setSizes({kChartPx, kTablePx});
  body->setChildrenCollapsible(false);
  m_body = body;
  m_empty->setAlignment(Qt::AlignCenter);
  m_empty->setWordWrap(true);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  fillHead();
  layout->addWidget(m_head);
  layout->addWidget(m_body, 1);
  layout->addWidget(m_layers, 1);
  layout->addWidget(m_empty, 1);
  auto* seen = new SeenRefresh(
      *this, [&session] { return isLarge(session); }, [this] { follow(); },
      [&session] { return session.plan().isAnalysing(); });
  connect(&PlanSteps::of(session.plan()), &PlanSteps::planChanged, seen, &SeenRefresh::request);
}

void MemoryPanel::fillHead() {
  m_caption->setWordWrap(true);
  m_caption->setToolTip(
      tr("Planned memory, allocated once; no run needed. Timings shows the totals with kernel workspaces.\nLeft and "
         "Right: previous and next step"));
  m_view->addItem(tr("By step"), false);
  m_view->addItem(tr("By layer"), true);
  m_view->setAccessibleName(tr("Memory by step or by layer"));
  m_view->setToolTip(
      tr("By layer: parameters, gradients and kept tensors of each block, and what recipes, offloading "
         "and recomputation would change"));
  m_plan->addItem(tr("Fused plan"), true);
  m_plan->addItem(tr("Unfused plan"), false);
  m_plan->setAccessibleName(tr("Plan to show"));
  m_onlyChanging->setToolTip(
      tr("Hides parameters, their gradients, the optimizer's state, and the pipeline's inputs and outputs"));
  for (QWidget* control : std::initializer_list<QWidget*>{m_view, m_plan, m_onlyChanging}) m_head->add(*control);
  connect(m_view, &QComboBox::activated, this, &MemoryPanel::refresh);
  connect(m_plan, &QComboBox::activated, this, &MemoryPanel::refresh);
  connect(m_onlyChanging, &QCheckBox::toggled, m_chart, &MemoryChart::setOnlyChanging);
}

void MemoryPanel::setFilter(RunFilter& filter) {
  m_filter = &filter;
  auto* bar = new RunFilterBar(m_session, filter, this);
  m_head->add(*bar->button());
  static_cast<QBoxLayout*>(layout())->insertWidget(1, bar);
  connect(&filter, &RunFilter::changed, this, &MemoryPanel::follow);
}

QString MemoryPanel::emptyText() const {
  if (!m_session.plan().analysis()->isRunnable()) return tr("No memory plan: the pipeline has errors. See Problems.");
  if (!m_chart->plot().columns.empty()) return {};
  return isFiltered() ? tr("No step of this plan matches the filter. Remove a filter term.")
                      : tr("This pipeline has no steps.");
}

void MemoryPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  if (m_isBehind) refresh();
}

void MemoryPanel::follow() {
  m_isBehind = true;
  if (isVisible()) refresh();
}

void MemoryPanel::refresh() {
  m_isBehind = false;
  refreshChart();
  refreshTable();
  m_table->setVisible(m_session.setup().pass() == ExecutionMode::Training);
  m_caption->setText(memorySummary(*m_session.plan().analysis()));
  const QString nothing = emptyText();
  m_empty->setText(nothing);
  m_empty->setVisible(!nothing.isEmpty());
  m_body->setVisible(nothing.isEmpty() && !isByLayer());
  m_layers->setVisible(nothing.isEmpty() && isByLayer());
  for (QWidget* const ofSteps : {static_cast<QWidget*>(m_plan), static_cast<QWidget*>(m_onlyChanging)})
    ofSteps->setVisible(!isByLayer());
}

void MemoryPanel::setByLayer(bool isByLayer) {
  m_view->setCurrentIndex(m_view->findData(isByLayer));
  refresh();
}

void MemoryPanel::refreshChart() {
  MemoryPlot plot = memoryPlot(*m_session.plan().analysis(), m_plan->currentData().toBool());
  if (isFiltered())
    plot = onlyColumns(std::move(plot), [this](const MemoryColumn& column) { return m_filter->keeps(stepOf(column)); });
  m_chart->setPlot(std::move(plot));
}

/// Forward keeps the tensors, backward reads them.
void MemoryPanel::refreshTable() {
  std::vector<KeptGroup> groups = keptByOp(*m_session.plan().analysis());
  if (isFiltered())
    std::erase_if(groups, [this](const KeptGroup& group) {
      return !m_filter->keepsRow(group.op.toStdString(), group.owner.toStdString(), {"forward", "backward"});
    });
  m_table->setGroups(groups);
}

}  // namespace fuseline::ui
