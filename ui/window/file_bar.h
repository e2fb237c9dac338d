// FileBar: says that another program changed the file of the open pipeline. It stands above the canvas and waits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/file_watch.h"
#include "ui/theme/theme.h"

#include <QLabel>
#include <QPushButton>
#include <QWidget>

namespace fuseline::ui {

class FileBar : public QWidget {
  Q_OBJECT

 public:
  FileBar(Session& session, FileWatch& watch, const Theme& theme, QWidget* parent = nullptr);

 Q_SIGNALS:
  void reloadWanted();
  void compareWanted();

 private:
  void refresh();
  QString text() const;

  Session& m_session;
  FileWatch& m_watch;
  QLabel* m_text;
  QPushButton* m_reload;
  QPushButton* m_compare;
};

}  // namespace fuseline::ui
