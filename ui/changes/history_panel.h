// HistoryPanel: what was done to the pipeline, to go back to, and forth again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/changes/history_model.h"
#include "ui/session/session.h"
#include "ui/theme/theme.h"

#include <QListView>
#include <QWidget>

namespace fuseline::ui {

/// A click or Enter takes the pipeline to the state of that row; arrow keys only walk.
class HistoryPanel : public QWidget {
  Q_OBJECT

 public:
  HistoryPanel(Session& session, const Theme& theme, QWidget* parent = nullptr);
  QListView* view() const { return m_view; }
  const HistoryModel& model() const { return *m_model; }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void showCurrent();
  void goTo(const QModelIndex& index);

  Session& m_session;
  HistoryModel* m_model;
  QListView* m_view;
};

}  // namespace fuseline::ui
