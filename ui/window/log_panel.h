// LogPanel: the messages of this window, of which the status line shows only the last one, and not for long.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/session.h"
#include "ui/window/message_log.h"

#include <QTreeView>
#include <QWidget>

namespace fuseline::ui {

class LogPanel : public QWidget {
  Q_OBJECT

 public:
  LogPanel(Session& session, const Theme& theme, QWidget* parent = nullptr);
  MessageLog& log() { return *m_log; }
  QTreeView* view() const { return m_view; }
  /// A command that shows this folder where files are shown; it need not be there yet.
  void offerFolder(const QString& text, const QString& folder);

 private:
  void addCommand(const QString& text, const std::function<void()>& run);
  void followRuns();
  void selectOpsOf(const QModelIndex& index);

  Session& m_session;
  MessageLog* m_log;
  QTreeView* m_view;
};

}  // namespace fuseline::ui
