// What the tests of the window share: a small pipeline, a session with it, and waiting for the analysis.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/support/small_pipelines.h"
#include "tests/support/temporary_folder.h"
#include "ui/window/main_window.h"

#include <QString>
#include <QTest>

#include <memory>
#include <string>

namespace fuseline::ui {

using testing::residualPipeline;
using testing::smallPipeline;

/// Waits until the analysis has caught up with the document.
bool waitForAnalysis(Session& session);

/// A window over a session, without the user's settings, with a pipeline that is analysed.
struct Fixture {
  explicit Fixture(const std::string& text, const QStringList& workerCommand = {});
  Theme theme;
  Session session;
  MainWindow window;

  const DocumentOp& op(const char* id) const { return *session.document().findOp(id); }
  /// Where a port is on the canvas' viewport.
  QPoint portOnView(const PortRef& port);
};

/// Settings of its own, which no other program sees.
class OwnSettings {
 public:
  OwnSettings();
  ~OwnSettings();

 private:
  testing::TemporaryFolder m_folder;
};

/// A run of the small pipeline by the reference.
RunRecord measuredRun(const char* timing = "auto");

/// A window with this run opened from a file and this pane in front.
struct OpenedRun : Fixture {
  OpenedRun(const RunRecord& record, const QString& pane);

  testing::TemporaryFolder folder;
  bool isOpen = false;
};

/// Two fingers on a touchpad over a widget; factor: above 1 they move apart.
void pinch(QWidget& widget, QPointF position, double factor);

/// Presses, moves and releases the left button over a viewport, as a hand would.
void dragMouse(QWidget* viewport, QPoint from, QPoint to);

}  // namespace fuseline::ui
