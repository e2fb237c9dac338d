// OverridesTable: quantizers by op, tensor and GEMM, edited in place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/inspector/field_problem.h"
#include "ui/inspector/overrides_model.h"
#include "ui/theme/theme.h"

#include <QTableView>
#include <QToolButton>
#include <QWidget>

#include <functional>

class QBoxLayout;

namespace fuseline::ui {

/// Hidden while the document has no recipe that quantizes. Problems of the recipe are listed below the table.
class OverridesTable : public QWidget {
  Q_OBJECT

 public:
  OverridesTable(Session& session, const Theme& theme, QWidget* parent = nullptr);
  void refresh();
  QTableView* view() const { return m_view; }

 private:
  void createView();
  QWidget* createTools();
  QToolButton* addTool(QBoxLayout& row, const QString& tip, std::function<void()> run);
  void addOverride();
  void removeCurrent();
  void moveCurrent(int by);
  void select(int row);
  void followRows();
  void enableTools();

  Session& m_session;
  OverridesModel* m_model;
  QTableView* m_view;
  QToolButton* m_remove = nullptr;
  QToolButton* m_up = nullptr;
  QToolButton* m_down = nullptr;
  FieldProblem* m_problem;
};

}  // namespace fuseline::ui
