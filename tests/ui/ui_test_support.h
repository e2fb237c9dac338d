// Shared helpers of the window's tests: a small pipeline, a session with it, and waiting for the analysis.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/support/small_pipelines.h"
#include "tests/support/temporary_folder.h"
#include "ui/canvas/canvas_commands.h"
#include "ui/canvas/canvas_selection.h"
#include "ui/canvas/change_marks.h"
#include "ui/canvas/copy_gesture.h"
#include "ui/canvas/drop_gesture.h"
#include "ui/canvas/node_moves.h"
#include "ui/canvas/wire_gesture.h"
#include "ui/changes/changes_panel.h"
#include "ui/changes/history_panel.h"
#include "ui/flame/flame_panel.h"
#include "ui/fusions/fusions_panel.h"
#include "ui/fusions/plan_panel.h"
#include "ui/fusions/rules_panel.h"
#include "ui/fusions/suggestions_panel.h"
#include "ui/inspector/inspector_panel.h"
#include "ui/library/palette_panel.h"
#include "ui/memory/memory_panel.h"
#include "ui/numerics/numerics_panel.h"
#include "ui/numerics/tensor_panel.h"
#include "ui/outline/outline_panel.h"
#include "ui/problems/problems_panel.h"
#include "ui/roofline/roofline_panel.h"
#include "ui/runs/runs_panel.h"
#include "ui/sweep/sweep_panel.h"
#include "ui/timeline/timeline_panel.h"
#include "ui/timings/timings_panel.h"
#include "ui/tours/tour_bar.h"
#include "ui/window/block_bar.h"
#include "ui/window/drawing_commands.h"
#include "ui/window/help_menu.h"
#include "ui/window/log_panel.h"
#include "ui/window/main_window.h"
#include "ui/window/workspaces.h"

#include <QString>
#include <QTest>

#include <memory>
#include <string>

namespace fuseline::ui {

using testing::residualPipeline;
using testing::smallPipeline;

/// Waits until the analysis has caught up with the document.
bool waitForAnalysis(Session& session);

/// A window of which every part can be reached.
class TestWindow : public MainWindow {
 public:
  using MainWindow::MainWindow;

  BlockBar& blockBar() { return *findChild<BlockBar*>(); }
  MessageBar& messageBar() { return *findChild<MessageBar*>(); }
  Workspaces& workspaces() { return *findChild<Workspaces*>(); }
  TourBar& tourBar() { return *findChild<TourBar*>(); }
  ChangeMarks& changeMarks() { return *findChild<ChangeMarks*>(); }
  QMenu& examplesMenu() { return *findChild<QMenu*>(QStringLiteral("examples")); }
  DrawingCommands& drawings() { return *findChild<DrawingCommands*>(); }
  HelpMenu& helpMenu() { return *findChild<HelpMenu*>(); }
  Shortcuts& shortcuts() { return helpMenu().shortcuts(); }
  StartPage& startPage() { return start().page(); }
  PalettePanel& palettePanel() { return panes().get<PalettePanel>(); }
  InspectorPanel& inspector() { return panes().get<InspectorPanel>(); }
  ProblemsPanel& problems() { return panes().get<ProblemsPanel>(); }
  PlanPanel& plan() { return panes().get<PlanPanel>(); }
  TimingsPanel& timings() { return panes().get<TimingsPanel>(); }
  TimelinePanel& timeline() { return panes().get<TimelinePanel>(); }
  FlamePanel& flame() { return panes().get<FlamePanel>(); }
  RooflinePanel& roofline() { return panes().get<RooflinePanel>(); }
  MemoryPanel& memory() { return panes().get<MemoryPanel>(); }
  NumericsPanel& numerics() { return panes().get<NumericsPanel>(); }
  TensorPanel& tensor() { return panes().get<TensorPanel>(); }
  FusionsPanel& fusions() { return panes().get<FusionsPanel>(); }
  SuggestionsPanel& suggestionsPanel() { return panes().get<SuggestionsPanel>(); }
  OutlinePanel& outline() { return panes().get<OutlinePanel>(); }
  RulesPanel& rules() { return panes().get<RulesPanel>(); }
  SweepPanel& sweep() { return panes().get<SweepPanel>(); }
  RunsPanel& runs() { return panes().get<RunsPanel>(); }
  LogPanel& log() { return panes().get<LogPanel>(); }
  HistoryPanel& history() { return panes().get<HistoryPanel>(); }
  ChangesPanel& changes() { return panes().get<ChangesPanel>(); }
};

/// A window over a session, without the user's settings, with a pipeline that is analysed.
struct Fixture {
  explicit Fixture(const std::string& text, const QStringList& workerCommand = {});
  Theme theme;
  Session session;
  TestWindow window;

  const DocumentOp& op(const char* id) const { return *session.pipeline().document().findOp(id); }
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
RunRecord measuredRun(StepTiming timing = StepTiming::Auto);

/// A window with this run opened from a file and this pane in front.
struct OpenedRun : Fixture {
  OpenedRun(const RunRecord& record, const QString& pane);

  testing::TemporaryFolder folder;
  bool isOpen = false;
};

/// The accessible name of a widget. Where it has none, and of an action: its text without the mnemonic.
QString nameOf(const QObject& object);

/// The child of this name, which ends a test where there is none.
template <typename Child>
Child* named(const QObject& parent, const char* name) {
  for (Child* child : parent.findChildren<Child*>())
    if (nameOf(*child) == QString::fromUtf8(name)) return child;
  qFatal("There is no child of the name %s.", name);
}

/// Whether a label contains this text.
bool hasLabel(const QObject& parent, const char* text);

/// Gives a pane this size, however much room its dock has.
void resizePane(QWidget& pane, QSize size);

/// Two fingers on a touchpad over a widget; factor: above 1 they move apart.
void pinch(QWidget& widget, QPointF position, double factor);

/// Presses, moves and releases the left button over a viewport, as a hand would.
void dragMouse(QWidget* viewport, QPoint from, QPoint to);

}  // namespace fuseline::ui
