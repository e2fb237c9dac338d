// FlamePanel: where the time of the last run goes, from the whole plan down to kernels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/flame/flame_view.h"
#include "ui/timings/run_filter_bar.h"
#include "ui/widgets/pane_head.h"

#include <QCheckBox>
#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QScrollArea>
#include <QWidget>

namespace fuseline::ui {

class FlamePanel : public QWidget {
  Q_OBJECT

 public:
  FlamePanel(Session& session, const Theme& theme, QWidget* parent = nullptr);

  /// Shows the steps that the filter keeps, with its chips above them. filter outlives the panel.
  void setFilter(RunFilter& filter);
  FlameView* view() const { return m_view; }
  QString caption() const { return m_caption->text(); }
  /// Why there is nothing to see; empty where there is.
  QString emptyText() const;
  /// Saves the visible part as SVG. Errors: the file could not be written.
  Result<void> saveSvg(const QString& path) const;

 Q_SIGNALS:
  void message(const QString& sentence);

 protected:
  void showEvent(QShowEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void fillHead();
  void follow();
  void refresh();
  void refreshPlans();
  void refreshBoxes();
  void refreshCaption();
  void search();
  void askAndSave();
  QString searchText() const;

  Session& m_session;
  const Theme& m_theme;
  bool m_isBehind = true;  // outdated, while the pane is hidden
  QLabel* m_caption;
  QLabel* m_empty;
  QComboBox* m_plan;
  QCheckBox* m_together;
  QLineEdit* m_search;
  FlameView* m_view;
  QScrollArea* m_area;
  PaneHead* m_head;
  RunFilter* m_filter = nullptr;
};

}  // namespace fuseline::ui
