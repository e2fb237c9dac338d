// TimingsPanel: the measured times of the unfused and the fused plan, side by side.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/models/timings_model.h"
#include "ui/session/session.h"

#include <QLabel>
#include <QTreeView>
#include <QWidget>

namespace fuseline::ui {

class TimingsPanel : public QWidget {
  Q_OBJECT

 public:
  TimingsPanel(Session& session, const Theme& theme, QWidget* parent = nullptr);
  const TimingsModel& model() const { return *m_model; }
  QTreeView* view() const { return m_view; }
  /// What the table shows, of where: rich text.
  QString caption() const { return m_caption->text(); }
  /// The table as tab-separated text, for spreadsheets.
  QString asText() const;

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void createView();
  void fitColumns();
  void refresh();
  void refreshComparison();
  void refreshCaption();
  QString baselineText() const;
  void showSelection();
  void takeSelection();

  Session& m_session;
  const Theme& m_theme;
  TimingsModel* m_model;
  QTreeView* m_view;
  QLabel* m_caption;
  QLabel* m_empty;
  std::optional<Result<RunComparison>> m_comparison;  // with the baseline, if there is one
  bool m_isSyncing = false;
};

}  // namespace fuseline::ui
