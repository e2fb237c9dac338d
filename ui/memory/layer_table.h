// LayerTable: predicted memory by layer, and what recipes, offloading and recomputation would change.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/memory_forecast.h"
#include "ui/session/session.h"

#include <QStandardItemModel>
#include <QThreadPool>
#include <QTreeView>

namespace fuseline::ui {

/// Plans on a thread of its own while it is visible. Ctrl+C copies all.
class LayerTable : public QTreeView {
  Q_OBJECT

 public:
  enum Column {
    NameColumn,
    ParametersColumn,
    GradientsColumn,
    KeptColumn,
    OptimizerColumn,
    HostColumn,
    AllocatedColumn
  };

  explicit LayerTable(Session& session, QWidget* parent = nullptr);
  ~LayerTable() override;

  /// Are the rows those of the current plan?
  bool isUpToDate() const { return m_isUpToDate; }

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  void request();
  void showThatItIsComputed();
  void accept(quint64 number, const MemoryForecast& forecast);

  Session& m_session;
  QStandardItemModel* m_model;
  bool m_isUpToDate = false;
  quint64 m_number = 0;  // of the newest request; results of older ones are dropped
  QThreadPool m_pool;
};

}  // namespace fuseline::ui
