// FrameCommands: the commands of frames and notes, in the menu Edit and on the canvas.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/graph_view.h"

#include <QKeySequence>
#include <QMenu>
#include <QObject>

#include <functional>

namespace fuseline::ui {

class FrameCommands : public QObject {
  Q_OBJECT

 public:
  FrameCommands(GraphScene& scene, GraphView& view, const Theme& theme, QObject* parent);

  /// "Frames and notes", which is in the context menu of the canvas as well.
  void addMenu(QMenu& editMenu);

 private:
  void add(QMenu& menu, const QString& text, const QKeySequence& shortcut, std::function<void()> run);
  void addColors(QMenu& menu);
  void showColors();
  void selectNext(int step);

  GraphScene& m_scene;
  GraphView& m_view;
  const Theme& m_theme;
  QList<QAction*> m_colors;  // their names in the file are their data
};

}  // namespace fuseline::ui
