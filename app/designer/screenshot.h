// Screenshot: opens a file, waits for what was asked for, saves a picture of the window or of the canvas, and ends the
// program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/drawing.h"
#include "ui/window/main_window.h"

#include <QElapsedTimer>
#include <QObject>
#include <QString>

#include <optional>

namespace fuseline {

struct ScreenshotRequest {
  QString outPath;
  QString selection;              // an op to select first
  QString pane;                   // to bring to the front; empty: as the window does it
  std::optional<RunPurpose> run;  // what to wait for
  QString tensor;                 // of a capture
  /// A drawing of the canvas in place of a picture of the window.
  std::optional<ui::DrawingOptions> drawing = std::nullopt;
};

class Screenshot : public QObject {
  Q_OBJECT

 public:
  Screenshot(ScreenshotRequest request, ui::MainWindow& window, ui::Session& session);

 private:
  void handleAnalysis();
  void takeSoon();
  void take();
  void draw();
  void fail(const QString& sentence);

  ScreenshotRequest m_request;
  ui::MainWindow& m_window;
  ui::Session& m_session;
  bool m_isRunStarted = false;
  bool m_areDevicesKnown = false;  // the toolbar lists them
  QElapsedTimer m_sinceStart;
};

}  // namespace fuseline
