// DrawingCommands: drawings of the canvas: into a file, onto the clipboard, onto paper, and to other windows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/drawing.h"
#include "ui/canvas/graph_scene.h"
#include "ui/session/session.h"

#include <QMimeData>
#include <QObject>
#include <QTemporaryDir>

#include <memory>

namespace fuseline::ui {

class DrawingCommands : public QObject {
  Q_OBJECT

 public:
  /// Lives as long as the window does.
  DrawingCommands(Session& session, const GraphScene& scene, QWidget& window);

  void exportToFile();
  /// As the last drawing was exported. A long one can be canceled.
  void writeTo(const QString& path);
  // The same:
  void copy();
  void print();
  /// nullptr where there is none, and the user knows.
  std::unique_ptr<QMimeData> toDrag();

 Q_SIGNALS:
  void message(const QString& sentence, Severity severity);
  /// Message that needs no attention.
  void hint(const QString& sentence);

 private:
  void refuse(const Error& error);

  Session& m_session;
  const GraphScene& m_scene;
  QWidget& m_window;
  DrawingOptions m_options;      // of the last drawing
  QTemporaryDir m_draggedFiles;  // until the window closes: the target of a drag may still read one
};

}  // namespace fuseline::ui
