// The same figures as `fuseline explain --memory`.
// SPDX-License-Identifier: Apache-2.0
#include "ui/memory/layer_table.h"

#include "core/support/text.h"
#include "ui/theme/format.h"
#include "ui/widgets/roomy_delegate.h"
#include "ui/widgets/table_copying.h"

#include <algorithm>
#include <utility>

namespace fuseline::ui {

namespace {

/// Share of the width: the other columns are to be in sight.
constexpr double kMostLayerShare = 0.38;

QStandardItem* layerCell(const QString& text) {
  auto* item = new QStandardItem(text);
  item->setEditable(false);
  return item;
}

QStandardItem* layerBytes(std::int64_t bytes) {
  QStandardItem* item = layerCell(toQt(formatBytes(bytes)));
  item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
  return item;
}

QList<QStandardItem*> rowOf(const QString& name, const LayerMemory& memory) {
  QStandardItem* layer = layerCell(name);
  layer->setToolTip(name);  // the column may be too narrow for it
  return {layer, layerBytes(memory.parameters), layerBytes(memory.gradients), layerBytes(memory.kept),
          layerBytes(memory.optimizer)};
}

QList<QStandardItem*> rowOf(const MemoryChange& change) {
  const QString name = toQt(change.name);
  if (!change.problem.empty()) {
    QStandardItem* item = layerCell(LayerTable::tr("%1: not possible").arg(name));
    item->setToolTip(toQt(change.problem));
    return {item};
  }
  QList<QStandardItem*> row = rowOf(change.isEstimate ? LayerTable::tr("%1 (estimate)").arg(name) : name, change.sum);
  row << layerBytes(change.onHost) << layerBytes(change.allocated);
  return row;
}

QStandardItem* groupOf(const QString& name) {
  QStandardItem* group = layerCell(name);
  QFont font = group->font();
  font.setBold(true);
  group->setFont(font);
  return group;
}

}  // namespace

LayerTable::LayerTable(Session& session, QWidget* parent)
    : QTreeView(parent), m_session(session), m_model(new QStandardItemModel(this)) {
  setModel(m_model);
  setAccessibleName(tr("Memory by layer"));
  setFrameShape(QFrame::NoFrame);
  setUniformRowHeights(true);
  setAlternatingRowColors(true);
  makeRoomy(*this);
  makeCopyable(*this);
  m_pool.setMaxThreadCount(1);
  connect(&session.plan(), &LivePlan::analysisChanged, this, [this] {
    m_isUpToDate = false;
    if (isVisible()) request();
  });
}

LayerTable::~LayerTable() {
  m_pool.clear();
  m_pool.waitForDone();
}

void LayerTable::showEvent(QShowEvent* event) {
  QTreeView::showEvent(event);
  if (!m_isUpToDate) request();
}

void LayerTable::request() {
  m_pool.clear();
  if (m_model->rowCount() == 0) showThatItIsComputed();
  const PipelineDocument& document = m_session.pipeline().document();
  const LivePlan& plan = m_session.plan();
  m_pool.start([this, number = ++m_number, document, analysisOf = plan.analysisOf(document),
                optionsOf = plan.optionsFor(document)] {
    const std::shared_ptr<const Analysis> analysis = analysisOf();
    if (!analysis->isRunnable()) return;
    MemoryForecast forecast = memoryForecast(document, optionsOf(), *analysis);
    QMetaObject::invokeMethod(
        this, [this, number, forecast = std::move(forecast)] { accept(number, forecast); }, Qt::QueuedConnection);
  });
}

/// A large pipeline takes seconds. Rows of the plan before the last edit stay meanwhile.
void LayerTable::showThatItIsComputed() {
  m_model->setHorizontalHeaderLabels({tr("Layer")});
  m_model->appendRow(layerCell(tr("Calculating memory by layer…")));
}

void LayerTable::accept(quint64 number, const MemoryForecast& forecast) {
  if (number != m_number) return;
  m_model->clear();
  m_model->setHorizontalHeaderLabels({tr("Layer"), tr("Parameters"), tr("Gradients"), tr("Kept for backward"),
                                      tr("AdamW state"), tr("On the host"), tr("Allocated")});
  m_model->horizontalHeaderItem(OptimizerColumn)
      ->setToolTip(tr("Two moments in float32, and a float32 master copy of 16-bit parameters.\nOnly runs with an "
                      "optimizer (Run > Options) allocate this state."));
  for (int column = ParametersColumn; column <= AllocatedColumn; ++column)
    m_model->horizontalHeaderItem(column)->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
  QStandardItem* layers = groupOf(tr("Layers of the fused plan"));
  for (const LayerMemory& layer : groupedLayers(forecast.layers)) layers->appendRow(rowOf(toQt(layer.layer), layer));
  QStandardItem* changes = groupOf(tr("Whole plan, and the plan with one change"));
  for (const MemoryChange& change : forecast.changes) changes->appendRow(rowOf(change));
  m_model->appendRow(layers);
  m_model->appendRow(changes);
  for (int row = 0; row < m_model->rowCount(); ++row) setFirstColumnSpanned(row, {}, true);
  expandAll();
  for (int column = 0; column < AllocatedColumn; ++column) resizeColumnToContents(column);
  setColumnWidth(NameColumn, std::min(columnWidth(NameColumn), static_cast<int>(width() * kMostLayerShare)));
  m_isUpToDate = true;
}

}  // namespace fuseline::ui
