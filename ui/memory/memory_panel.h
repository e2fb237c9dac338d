// MemoryPanel: where the memory of the plans goes, step by step and op by op. It needs no run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/memory/kept_table.h"
#include "ui/memory/layer_table.h"
#include "ui/memory/memory_chart.h"
#include "ui/timings/run_filter.h"
#include "ui/widgets/pane_head.h"

#include <QCheckBox>
#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QWidget>

namespace fuseline::ui {

class MemoryPanel : public QWidget {
  Q_OBJECT

 public:
  MemoryPanel(Session& session, const Theme& theme, QWidget* parent = nullptr);

  /// Steps and ops that it keeps are shown; the caption is of all.
  void setFilter(RunFilter& filter);
  MemoryChart* chart() const { return m_chart; }
  KeptTable* table() const { return m_table; }
  LayerTable* layers() const { return m_layers; }
  void setByLayer(bool isByLayer);
  QString caption() const { return m_caption->text(); }
  /// Why there is nothing to see; empty where there is.
  QString emptyText() const;

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  void fillHead();
  void follow();
  void refresh();
  void refreshChart();
  void refreshTable();
  bool isByLayer() const { return m_view->currentData().toBool(); }
  bool isFiltered() const { return m_filter && m_filter->isActive(); }

  Session& m_session;
  RunFilter* m_filter = nullptr;
  bool m_isBehind = true;  // outdated, while the pane is hidden
  QLabel* m_caption;
  PaneHead* m_head;
  QLabel* m_empty;
  QComboBox* m_view;
  QComboBox* m_plan;
  QCheckBox* m_onlyChanging;
  MemoryChart* m_chart;
  KeptTable* m_table;
  LayerTable* m_layers;
  QWidget* m_body;
};

}  // namespace fuseline::ui
