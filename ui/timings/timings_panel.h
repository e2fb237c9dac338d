// TimingsPanel: the measured times of the unfused and the fused plan, side by side, and how the rounds of a row spread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/session.h"
#include "ui/timings/baseline_bar.h"
#include "ui/timings/round_comparison_view.h"
#include "ui/timings/run_filter_bar.h"
#include "ui/timings/sample_view.h"
#include "ui/timings/timings_model.h"
#include "ui/timings/timings_order.h"
#include "ui/widgets/pane_head.h"
#include "ui/widgets/table_columns.h"

#include <QLabel>
#include <QPushButton>
#include <QSplitter>
#include <QToolButton>
#include <QTreeView>
#include <QWidget>

#include <map>
#include <memory>

namespace fuseline::ui {

class TimingsPanel : public QWidget {
  Q_OBJECT

 public:
  /// isKept: whether its columns and parts are read from the settings and written there.
  TimingsPanel(Session& session, const Theme& theme, bool isKept = false, QWidget* parent = nullptr);
  /// Shows the steps that the filter keeps, with its chips above them. filter outlives the panel.
  void setFilter(RunFilter& filter);
  const TimingsModel& model() const { return *m_model; }
  QTreeView* view() const { return m_view; }
  /// Contents and origin of the table, as rich text.
  QString caption() const { return m_caption->text(); }
  TableColumns& columns() { return m_columns; }
  /// The rounds of the current row, or from end to end.
  SampleView& samples() { return *m_samples; }
  /// The same rounds over those of the reference.
  RoundComparisonView& rounds() { return *m_rounds; }
  /// The table as it is shown, as tab-separated text, for spreadsheets.
  QString asText() const;

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void createHead();
  void createOrder();
  void createView();
  void createBody();
  void refresh();
  void refreshEmpty();
  void refreshFilter();
  void refreshComparison();
  void refreshCaption();
  void showMeasurement();
  void refreshRunAgain();
  void refreshSamples();
  void refreshRounds(const TimingsRow* row);
  const Result<RunComparison>& comparisonWith(const Baseline& baseline);
  void refreshNotes();
  void editNote();
  void showColumn(int slot);
  const TimingsRow* shownRow() const;
  QString baselineText() const;
  void showSelection();
  void takeSelection();

  Session& m_session;
  const Theme& m_theme;
  TimingsModel* m_model;
  TimingsOrder* m_order;
  QTreeView* m_view;
  TableColumns m_columns;
  SampleView* m_samples;
  RoundComparisonView* m_rounds;
  QSplitter* m_body;
  QLabel* m_caption;
  PaneHead* m_head;
  BaselineBar* m_baselineBar;
  RunFilter* m_filter = nullptr;
  QAction* m_editNote;
  QPushButton* m_runAgain;
  QToolButton* m_byTime;
  QToolButton* m_showSamples;
  QLabel* m_empty;
  std::map<std::shared_ptr<const RunRecord>, Result<RunComparison>> m_known;  // of the run that is shown
  std::optional<Result<RunComparison>> m_comparison;                          // with the reference, if there is one
  bool m_isKept;
  bool m_isSyncing = false;
  bool m_isNarrow = false;
  bool m_wantsSamples = true;  // as long as the pane is narrow
};

}  // namespace fuseline::ui
