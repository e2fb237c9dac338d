// BookmarkCommands: the commands of numbered places on the canvas, in the menu View.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/graph_view.h"
#include "ui/session/session.h"
#include "ui/session/view_bookmarks.h"

#include <QMenu>
#include <QObject>

namespace fuseline::ui {

class BookmarkCommands : public QObject {
  Q_OBJECT

 public:
  /// isKept: in the user's settings. Lives as long as the window does.
  BookmarkCommands(Session& session, GraphView& view, bool isKept, QObject* parent);

  /// Digits go to a place while the canvas has the keyboard, Ctrl+Shift and a digit make it.
  void addMenu(QMenu& viewMenu);

 Q_SIGNALS:
  /// A sentence for the status line.
  void hint(const QString& sentence);

 private:
  void set(int number);
  void show(int number);

  GraphView& m_view;
  ViewBookmarks m_bookmarks;
};

}  // namespace fuseline::ui
