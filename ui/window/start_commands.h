// StartCommands: how a window begins: the start page, guided tours, and the file that was open last.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/session.h"
#include "ui/theme/theme.h"
#include "ui/tours/tour_bar.h"
#include "ui/window/file_commands.h"
#include "ui/window/persistence.h"
#include "ui/window/start_page.h"

#include <QObject>

namespace fuseline::ui {

class StartCommands : public QObject {
  Q_OBJECT

 public:
  /// All of them live as long as the window does.
  StartCommands(Session& session, const Theme& theme, FileCommands& files, TourBar& tourBar, Persistence persistence,
                QWidget& window);

  StartPage& page() { return *m_page; }
  /// Templates, recent files and measured examples, above the pipeline that is open.
  void show();
  /// Whether the user wants it when nothing else is opened.
  bool isPageWanted() const;
  /// Asks first, where something unsaved would be lost.
  void startTour(const Tour& tour);
  /// The file that the window which was closed last had open. Empty: none, it is gone, or the user does not want it.
  QString fileToReopen() const;
  /// Remembers the open file for the next window.
  void remember(const QString& file) const;

 private:
  void connectPage();
  void keep(const char* key, bool value) const;
  bool reopens() const;

  FileCommands& m_files;
  TourBar& m_tourBar;
  Persistence m_persistence;
  StartPage* m_page;
};

}  // namespace fuseline::ui
