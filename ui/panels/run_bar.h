// RunBar: run, stop, which pass, how far it is, and on what.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/session.h"
#include "ui/theme/theme.h"

#include <QAction>
#include <QComboBox>
#include <QLabel>
#include <QProgressBar>
#include <QToolBar>

namespace fuseline::ui {

class RunBar : public QToolBar {
  Q_OBJECT

 public:
  RunBar(Session& session, const Theme& theme, QWidget* parent = nullptr);
  QAction* runAction() const { return m_run; }
  QAction* stopAction() const { return m_stop; }
  void setDeviceText(const QString& text, const QString& tip);

 private:
  void createChoices();
  /// Keeps up with the session.
  void follow();
  void refresh();
  void refreshIcons();
  void showProgress(const QString& stage, int done, int total);

  Session& m_session;
  const Theme& m_theme;
  QAction* m_run;
  QAction* m_stop;
  QComboBox* m_pass;
  QComboBox* m_recipe;
  QProgressBar* m_progress;
  QAction* m_progressAction;
  QLabel* m_device;
};

}  // namespace fuseline::ui
