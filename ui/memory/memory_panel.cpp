// The memory dock.
// SPDX-License-Identifier: Apache-2.0
#include "ui/memory/memory_panel.h"

#include "ui/session/large_pipeline.h"
#include "ui/widgets/seen_refresh.h"

#include <QSplitter>
#include <QVBoxLayout>

namespace fuseline::ui {

namespace {

// In these proportions.
constexpr int kChartPx = 600;
constexpr int kTablePx = 480;

}  // namespace

MemoryPanel::MemoryPanel(Session& session, const Theme& theme, QWidget* parent)
    : QWidget(parent),
      m_session(session),
      m_caption(new QLabel(this)),
      m_empty(new QLabel(this)),
      m_plan(new QComboBox(this)),
      m_onlyChanging(new QCheckBox(tr("Hide always-resident tensors"), this)),
      m_chart(new MemoryChart(session, theme)),
      m_table(new KeptTable(session, theme)) {
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
  layout->addLayout(makeHead());
  layout->addWidget(m_body, 1);
  layout->addWidget(m_empty, 1);
  auto* seen = new SeenRefresh(
      *this, [&session] { return isLarge(session); }, [this] { follow(); });
  connect(&session, &Session::analysisChanged, seen, &SeenRefresh::request);
}

QHBoxLayout* MemoryPanel::makeHead() {
  m_caption->setWordWrap(true);
  m_caption->setToolTip(
      tr("Planned memory, allocated once; no run needed. Timings shows the totals with kernel workspaces.\nLeft and "
         "Right: previous and next step"));
  m_plan->addItem(tr("Fused plan"), true);
  m_plan->addItem(tr("Unfused plan"), false);
  m_plan->setAccessibleName(tr("Plan to show"));
  m_onlyChanging->setToolTip(tr("Hides parameters, their gradients, inputs and outputs"));
  auto* head = new QHBoxLayout();
  head->setContentsMargins(10, 6, 10, 6);
  head->addWidget(m_caption, 1);
  head->addWidget(m_plan);
  head->addSpacing(8);
  head->addWidget(m_onlyChanging);
  connect(m_plan, &QComboBox::activated, this, &MemoryPanel::refreshChart);
  connect(m_onlyChanging, &QCheckBox::toggled, m_chart, &MemoryChart::setOnlyChanging);
  return head;
}

QString MemoryPanel::emptyText() const {
  if (!m_session.analysis()->isRunnable()) return tr("No memory plan: the pipeline has errors. See Problems.");
  return m_chart->plot().columns.empty() ? tr("This pipeline has no steps.") : QString();
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
  m_table->setGroups(keptByOp(*m_session.analysis()));
  m_table->setVisible(m_session.pass() == PassKind::Training);
  m_caption->setText(memorySummary(*m_session.analysis()));
  const QString nothing = emptyText();
  m_empty->setText(nothing);
  m_empty->setVisible(!nothing.isEmpty());
  m_body->setVisible(nothing.isEmpty());
}

void MemoryPanel::refreshChart() {
  m_chart->setPlot(memoryPlot(*m_session.analysis(), m_plan->currentData().toBool()));
}

}  // namespace fuseline::ui
