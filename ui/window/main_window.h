// MainWindow: canvas in the middle, panels around it, and the commands that join them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/graph_view.h"
#include "ui/canvas/overview_map.h"
#include "ui/changes/changes_panel.h"
#include "ui/changes/history_panel.h"
#include "ui/flame/flame_panel.h"
#include "ui/fusions/plan_panel.h"
#include "ui/fusions/rules_panel.h"
#include "ui/fusions/suggestions_panel.h"
#include "ui/fusions/why_not_panel.h"
#include "ui/inspector/inspector_panel.h"
#include "ui/library/palette_panel.h"
#include "ui/memory/memory_panel.h"
#include "ui/numerics/numerics_panel.h"
#include "ui/numerics/tensor_panel.h"
#include "ui/outline/outline_panel.h"
#include "ui/problems/problems_panel.h"
#include "ui/roofline/roofline_panel.h"
#include "ui/runs/run_bar.h"
#include "ui/runs/runs_panel.h"
#include "ui/session/session.h"
#include "ui/sweep/sweep_panel.h"
#include "ui/theme/theme.h"
#include "ui/timeline/timeline_panel.h"
#include "ui/timings/timings_panel.h"
#include "ui/tours/tour_bar.h"
#include "ui/widgets/message_bar.h"
#include "ui/widgets/pane_ring.h"
#include "ui/window/comparison_commands.h"
#include "ui/window/file_commands.h"
#include "ui/window/log_panel.h"
#include "ui/window/shortcuts.h"
#include "ui/window/start_page.h"

#include <QDockWidget>
#include <QLabel>
#include <QMainWindow>
#include <QMenu>
#include <QSettings>
#include <QToolButton>

#include <functional>

namespace fuseline::ui {

class Autosave;
class BlockBar;
class BlockCommands;
class GuideWindow;
class ViewMemory;

/// Whether the window reads and writes the user's settings. Tests and screenshots do not.
enum class Persistence { Settings, None };

class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  MainWindow(Session& session, Theme& theme, Persistence persistence, QWidget* parent = nullptr);

  /// False when the file could not be read; the sentence is shown in the window.
  bool openFile(const QString& path) { return m_files->open(path); }
  /// Compares with the pipeline of a file. False: it could not be read, and the sentence is shown in the window.
  bool compareWith(const QString& path);
  FileCommands& files() { return *m_files; }
  QMenu& examplesMenu() { return *m_examplesMenu; }
  /// Shows a bar while there is something to recover.
  void offerRecovery(Autosave& autosave);
  /// A sentence across the top of the canvas, until it is closed or replaced; the log keeps it.
  void showMessage(const QString& sentence, Severity severity = Severity::Note);
  MessageBar& messageBar() { return *m_message; }
  QString message() const { return m_message->text(); }

  BlockBar& blockBar() { return *m_blockBar; }
  GraphView& canvas() { return *m_view; }
  GraphScene& scene() { return *m_scene; }
  PalettePanel& palettePanel() { return *m_palette; }
  InspectorPanel& inspector() { return *m_inspector; }
  ProblemsPanel& problems() { return *m_problems; }
  PlanPanel& plan() { return *m_plan; }
  TimingsPanel& timings() { return *m_timings; }
  TimelinePanel& timeline() { return *m_timeline; }
  FlamePanel& flame() { return *m_flame; }
  RooflinePanel& roofline() { return *m_roofline; }
  MemoryPanel& memory() { return *m_memory; }
  NumericsPanel& numerics() { return *m_numerics; }
  TensorPanel& tensor() { return *m_tensor; }
  WhyNotPanel& whyNot() { return *m_whyNot; }
  SuggestionsPanel& suggestionsPanel() { return *m_suggestions; }
  OutlinePanel& outline() { return *m_outline; }
  RulesPanel& rules() { return *m_rules; }
  SweepPanel& sweep() { return *m_sweep; }
  RunsPanel& runs() { return *m_runs; }
  LogPanel& log() { return *m_log; }
  HistoryPanel& history() { return *m_history; }
  StartPage& startPage() { return *m_startPage; }
  Shortcuts& shortcuts() { return *m_shortcuts; }
  ChangesPanel& changes() { return *m_changes; }
  ChangeMarks& changeMarks() { return *m_marks; }
  PipelineComparison& comparison() { return *m_comparison; }
  void showTimings();
  /// In the panel Tensor.
  void lookAt(const QString& tensor);
  /// Templates, recent files and measured examples, above the pipeline that is open.
  void showStartPage();
  /// Asks first, where something unsaved would be lost.
  void startTour(const Tour& tour);
  TourBar& tourBar() { return *m_tourBar; }
  /// A page of the guide, from this heading on.
  GuideWindow& showGuide(const QString& page, const QString& heading = {});
  /// Whether the user wants it when nothing else is opened.
  bool wantsStartPage() const;
  /// The file that the window which was closed last had open. Empty: none, it is gone, or the user does not want it.
  QString fileToReopen() const;
  /// Brings a pane to the front: "plan", "timeline"; or the start page, "start". False: there is none of this name.
  bool showPane(const QString& name);
  QStringList paneNames() const;
  /// Docks at their places, in sizes that fit the window as it is now.
  void restoreDefaultLayout();

 protected:
  void childEvent(QChildEvent* event) override;
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;

 private:
  // Construction, in this order.
  void createCentre();
  void createDocks();
  void createFileMenu();
  void addDrawingCommands(QMenu& menu);
  void createEditMenu();
  void addUndoCommands(QMenu& menu);
  void addSelectionCommands(QMenu& menu);
  void addLayoutCommands(QMenu& menu);
  void addFindCommands(QMenu& menu);
  void createArrangeMenu(QMenu& editMenu);
  void createViewMenu();
  void createPanesMenu(QMenu& viewMenu);
  void createThemeMenu(QMenu& viewMenu);
  void createRunMenu();
  void addTensorCommand(QMenu& menu);
  void createHelpMenu();
  void createStartPage();
  void createToolBars();
  void createStatusBar();
  void connectFiles();
  void createFileBar();
  void connectSession();
  void connectRuns();
  void connectLog();
  void connectComparison();
  void restoreLayout();

  QDockWidget* addDock(const QString& name, const QString& title, QWidget* content, Qt::DockWidgetArea area);
  QToolButton* addStatusButton(const QString& text, const QString& tip, std::function<void()> run);
  QAction* addCommand(QMenu* menu, const QString& text, const QKeySequence& shortcut, std::function<void()> run,
                      const QString& icon = {});
  void applyDefaultLayout();
  void refreshIcons();
  void refreshOverflowIcons();
  void refreshTitle();
  void refreshUndo();
  void addToCanvas(QAction& action);
  std::function<void()> onSelection(std::function<void()> run);
  QAction* addCanvasKey(QMenu& menu, const QString& text, Qt::Key key, std::function<void()> run);
  void setTheme(ThemeChoice choice);
  void setHullFilter(HullFilter filter);
  void escape();
  /// Asks for a name.
  void makeBlock();
  /// Asks how many times.
  void repeatOp();
  QList<QWidget*> visiblePanes() const;
  void focusPane(int step);
  void focusPane(QWidget& pane);
  bool reopens() const;
  void showOutline();
  void lookAtTensors();
  void showReadOnly();
  void showDevices(const Json& devices);
  void sayMissingDevices(const Json& devices);

  Session& m_session;
  Theme& m_theme;
  Persistence m_persistence;
  GraphScene* m_scene = nullptr;
  BlockCommands* m_blockCommands = nullptr;
  BlockBar* m_blockBar = nullptr;
  GraphView* m_view = nullptr;
  OverviewMap* m_overview = nullptr;
  FileCommands* m_files = nullptr;
  MessageBar* m_message = nullptr;
  PalettePanel* m_palette = nullptr;
  InspectorPanel* m_inspector = nullptr;
  ProblemsPanel* m_problems = nullptr;
  WhyNotPanel* m_whyNot = nullptr;
  SuggestionsPanel* m_suggestions = nullptr;
  RulesPanel* m_rules = nullptr;
  SweepPanel* m_sweep = nullptr;
  RunsPanel* m_runs = nullptr;
  PipelineComparison* m_comparison = nullptr;
  ChangesPanel* m_changes = nullptr;
  ChangeMarks* m_marks = nullptr;
  ComparisonCommands* m_comparisonCommands = nullptr;
  PlanPanel* m_plan = nullptr;
  TimingsPanel* m_timings = nullptr;
  TimelinePanel* m_timeline = nullptr;
  FlamePanel* m_flame = nullptr;
  RooflinePanel* m_roofline = nullptr;
  MemoryPanel* m_memory = nullptr;
  NumericsPanel* m_numerics = nullptr;
  TensorPanel* m_tensor = nullptr;
  OutlinePanel* m_outline = nullptr;
  LogPanel* m_log = nullptr;
  HistoryPanel* m_history = nullptr;
  StartPage* m_startPage = nullptr;
  Shortcuts* m_shortcuts = nullptr;
  GuideWindow* m_guide = nullptr;  // as soon as it was wanted
  RunBar* m_runBar = nullptr;
  PaneRing* m_paneRing = nullptr;
  ViewMemory* m_viewMemory = nullptr;  // with Persistence::Settings
  TourBar* m_tourBar = nullptr;
  QList<QDockWidget*> m_docks;
  QDockWidget* m_planDock = nullptr;
  QDockWidget* m_timingsDock = nullptr;
  QDockWidget* m_memoryDock = nullptr;
  QDockWidget* m_numericsDock = nullptr;
  QDockWidget* m_tensorDock = nullptr;
  QDockWidget* m_sweepDock = nullptr;
  QDockWidget* m_rulesDock = nullptr;
  QDockWidget* m_runsDock = nullptr;
  QDockWidget* m_changesDock = nullptr;
  QDockWidget* m_problemsDock = nullptr;
  QDockWidget* m_outlineDock = nullptr;
  QDockWidget* m_logDock = nullptr;
  QDockWidget* m_historyDock = nullptr;
  Json m_devices = Json::array();  // as the worker named them
  QMenu* m_examplesMenu = nullptr;
  QAction* m_undo = nullptr;
  QAction* m_redo = nullptr;
  QAction* m_save = nullptr;
  QList<QAction*> m_hullActions;
  bool m_isFreshlyOpened = false;
  QLabel* m_hint = nullptr;
  QLabel* m_selected = nullptr;
  QToolButton* m_counts = nullptr;
  QToolButton* m_zoom = nullptr;
  QByteArray m_defaultState;
  QList<QPair<QAction*, QString>> m_iconActions;
};

}  // namespace fuseline::ui
