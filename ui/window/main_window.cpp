// The main window: construction in named steps, then commands.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/main_window.h"

#include "core/document/guide.h"
#include "ui/canvas/metrics.h"
#include "ui/numerics/numerics_text.h"
#include "ui/runs/measured_examples.h"
#include "ui/session/baseline_memory.h"
#include "ui/theme/format.h"
#include "ui/widgets/drag_source.h"
#include "ui/widgets/file_choice.h"
#include "ui/window/block_bar.h"
#include "ui/window/block_commands.h"
#include "ui/window/bookmark_commands.h"
#include "ui/window/command_palette.h"
#include "ui/window/file_bar.h"
#include "ui/window/frame_commands.h"
#include "ui/window/guide_window.h"
#include "ui/window/help.h"
#include "ui/window/recovery_bar.h"
#include "ui/window/run_commands.h"
#include "ui/window/shortcuts_dialog.h"
#include "ui/window/view_memory.h"
#include "ui/window/wire_label_commands.h"

#include <QAbstractSpinBox>
#include <QActionGroup>
#include <QApplication>
#include <QClipboard>
#include <QCloseEvent>
#include <QHBoxLayout>
#include <QInputDialog>
#include <QLineEdit>
#include <QMenuBar>
#include <QMimeData>
#include <QStatusBar>
#include <QTabBar>
#include <QToolBar>
#include <QToolButton>
#include <QVBoxLayout>

#include <algorithm>
#include <utility>

namespace fuseline::ui {

namespace {

// Raised when docks are added or renamed, so that an old layout is not forced onto a new window.
constexpr int kLayoutVersion = 11;
constexpr double kTimingsShare = 0.27;
constexpr int kPlanHeightPx = 110;
constexpr int kPaletteWidthPx = 194;
constexpr int kInspectorWidthPx = 356;
constexpr int kHintDurationMs = 8000;
constexpr auto kDeviceKey = "run/device";
constexpr auto kMissingDevicesKey = "run/missingDevices";
constexpr auto kKeepRunsKey = "run/keepsRuns";
constexpr auto kStartPageKey = "start/isShown";
constexpr auto kReopensKey = "start/reopens";
constexpr auto kLastFileKey = "session/lastFile";
constexpr auto kFoldersKey = "session/folders";

}  // namespace

MainWindow::MainWindow(Session& session, Theme& theme, Persistence persistence, QWidget* parent)
    : QMainWindow(parent), m_session(session), m_theme(theme), m_persistence(persistence) {
  setAcceptDrops(true);
  setDockOptions(AnimatedDocks | AllowNestedDocks | AllowTabbedDocks);
  resize(1600, 1000);
  createCentre();
  createDocks();
  createToolBars();
  createFileMenu();
  createEditMenu();
  createViewMenu();
  createRunMenu();
  createHelpMenu();
  m_shortcuts = new Shortcuts(*menuBar(), persistence == Persistence::Settings, this);
  createStatusBar();
  createStartPage();
  createFileBar();
  if (persistence == Persistence::Settings) m_viewMemory = new ViewMemory(session, *m_view, this);
  if (persistence == Persistence::Settings) new BaselineMemory(session, this);
  connectFiles();
  connectSession();
  connectRuns();
  connectLog();
  connectComparison();
  applyDefaultLayout();
  m_defaultState = saveState(kLayoutVersion);
  restoreLayout();
  refreshIcons();
  refreshTitle();
  refreshUndo();
}

// ------------------------------------------------------------------------------------------------------ construction

void MainWindow::createCentre() {
  auto* centre = new QWidget(this);
  m_scene = new GraphScene(m_session, m_theme, this);
  m_view = new GraphView(*m_scene, m_session, m_theme, centre);
  m_blockCommands = new BlockCommands(*m_scene, *m_view, this);
  m_overview = new OverviewMap(*m_scene, *m_view, m_theme);
  m_files = new FileCommands(m_session, *m_scene, m_persistence == Persistence::Settings, *this);
  m_comparison = new PipelineComparison(m_session, this);
  m_marks = new ChangeMarks(*m_scene, *m_comparison, m_theme, this);
  m_message = new MessageBar(m_theme, centre);
  auto* layout = new QVBoxLayout(centre);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(1);  // between bars
  m_tourBar = new TourBar(m_session, m_theme, centre);
  layout->addWidget(m_tourBar);
  layout->addWidget(m_message);
  m_blockBar = new BlockBar(m_scene->scope(), m_theme, centre);
  layout->addWidget(m_blockBar);
  layout->addWidget(m_view, 1);
  setCentralWidget(centre);
  m_paneRing = new PaneRing(m_theme, centre);
}

QDockWidget* MainWindow::addDock(const QString& name, const QString& title, QWidget* content, Qt::DockWidgetArea area) {
  auto* dock = new QDockWidget(title, this);
  dock->setObjectName(name);
  dock->setAccessibleName(title);
  dock->setWidget(content);
  addDockWidget(area, dock);
  m_docks.append(dock);
  return dock;
}

void MainWindow::createDocks() {
  m_palette = new PalettePanel(m_theme);
  m_inspector = new InspectorPanel(m_session, m_theme);
  m_problems = new ProblemsPanel(m_session, m_theme);
  m_whyNot = new WhyNotPanel(m_session, m_theme);
  m_suggestions = new SuggestionsPanel(m_session, m_theme);
  m_plan = new PlanPanel(m_session, m_theme);
  m_timings = new TimingsPanel(m_session, m_theme, m_persistence == Persistence::Settings);
  m_timeline = new TimelinePanel(m_session, m_theme, m_persistence == Persistence::Settings);
  m_flame = new FlamePanel(m_session, m_theme);
  m_roofline = new RooflinePanel(m_session, m_theme);
  m_memory = new MemoryPanel(m_session, m_theme);
  m_numerics = new NumericsPanel(m_session, m_theme);
  m_tensor = new TensorPanel(m_session, m_theme);
  m_outline = new OutlinePanel(m_session, m_theme);
  m_rules = new RulesPanel(m_session, m_theme);
  m_sweep = new SweepPanel(m_session, m_theme);
  m_runs = new RunsPanel(m_session, m_theme);
  m_log = new LogPanel(m_session, m_theme);
  m_history = new HistoryPanel(m_session, m_theme);
  m_changes = new ChangesPanel(m_session, *m_comparison, m_theme);
  m_comparisonCommands = new ComparisonCommands(m_session, *m_comparison, *m_changes, *m_view, *m_marks, *this);
  addDock(QStringLiteral("palette"), tr("Palette"), m_palette, Qt::LeftDockWidgetArea);
  addDock(QStringLiteral("inspector"), tr("Inspector"), m_inspector, Qt::RightDockWidgetArea);
  addDock(QStringLiteral("whyNot"), tr("Why not?"), m_whyNot, Qt::RightDockWidgetArea);
  const QDockWidget* suggestions =
      addDock(QStringLiteral("suggestions"), tr("Suggestions"), m_suggestions, Qt::RightDockWidgetArea);
  connect(suggestions, &QDockWidget::visibilityChanged, m_suggestions, &SuggestionsPanel::setSeen);
  m_planDock = addDock(QStringLiteral("plan"), tr("Plan"), m_plan, Qt::BottomDockWidgetArea);
  m_timingsDock = addDock(QStringLiteral("timings"), tr("Timings"), m_timings, Qt::BottomDockWidgetArea);
  addDock(QStringLiteral("timeline"), tr("Timeline"), m_timeline, Qt::BottomDockWidgetArea);
  addDock(QStringLiteral("flame"), tr("Flame"), m_flame, Qt::BottomDockWidgetArea);
  addDock(QStringLiteral("roofline"), tr("Roofline"), m_roofline, Qt::BottomDockWidgetArea);
  m_memoryDock = addDock(QStringLiteral("memory"), tr("Memory"), m_memory, Qt::BottomDockWidgetArea);
  m_numericsDock = addDock(QStringLiteral("numerics"), tr("Numerics"), m_numerics, Qt::BottomDockWidgetArea);
  m_tensorDock = addDock(QStringLiteral("tensor"), tr("Tensor"), m_tensor, Qt::BottomDockWidgetArea);
  m_sweepDock = addDock(QStringLiteral("sweep"), tr("Sweep"), m_sweep, Qt::BottomDockWidgetArea);
  m_runsDock = addDock(QStringLiteral("runs"), tr("Runs"), m_runs, Qt::BottomDockWidgetArea);
  m_changesDock = addDock(QStringLiteral("changes"), tr("Changes"), m_changes, Qt::BottomDockWidgetArea);
  m_rulesDock = addDock(QStringLiteral("rules"), tr("Rules"), m_rules, Qt::BottomDockWidgetArea);
  m_problemsDock = addDock(QStringLiteral("problems"), tr("Problems"), m_problems, Qt::BottomDockWidgetArea);
  m_outlineDock = addDock(QStringLiteral("outline"), tr("Outline"), m_outline, Qt::BottomDockWidgetArea);
  m_logDock = addDock(QStringLiteral("log"), tr("Log"), m_log, Qt::BottomDockWidgetArea);
  m_historyDock = addDock(QStringLiteral("history"), tr("History"), m_history, Qt::BottomDockWidgetArea);
  const auto showBlocks = [this] { m_palette->showBlocks(m_session.document()); };
  connect(&m_session, &Session::documentChanged, m_palette, showBlocks);
  showBlocks();
  connect(m_palette, &PalettePanel::activated, this,
          [this](const QString& entry) { m_scene->insertAfterSelection(entry.toStdString()); });
}

void MainWindow::applyDefaultLayout() {
  setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);
  splitDockWidget(m_planDock, m_timingsDock, Qt::Vertical);
  for (qsizetype i = m_docks.indexOf(m_timingsDock) + 1; i < m_docks.size(); ++i)
    tabifyDockWidget(m_docks[i - 1], m_docks[i]);
  m_timingsDock->raise();
  tabifyDockWidget(m_docks[2], m_docks[3]);
  m_docks[2]->raise();
  resizeDocks({m_docks[0], m_docks[1]}, {kPaletteWidthPx, kInspectorWidthPx}, Qt::Horizontal);
  resizeDocks({m_docks[1], m_docks[2]}, {430, 470}, Qt::Vertical);
  resizeDocks({m_planDock, m_timingsDock}, {kPlanHeightPx, qRound(height() * kTimingsShare)}, Qt::Vertical);
}

void MainWindow::restoreDefaultLayout() {
  restoreState(m_defaultState, kLayoutVersion);
  applyDefaultLayout();
}

QAction* MainWindow::addCommand(QMenu* menu, const QString& text, const QKeySequence& shortcut,
                                std::function<void()> run, const QString& icon) {
  auto* action = menu->addAction(text);
  if (!shortcut.isEmpty()) action->setShortcut(shortcut);
  if (!icon.isEmpty()) m_iconActions.append({action, icon});
  connect(action, &QAction::triggered, this, std::move(run));
  return action;
}

/// A command on the selection, for the canvas and for the outline, which stands for it.
void MainWindow::addToCanvas(QAction& action) {
  m_view->addAction(&action);
  m_outline->view()->addAction(&action);
}

/// The outline and the plan show the pipeline: from there a command is about what is selected in it, and not about what
/// is selected inside of a block on the canvas.
std::function<void()> MainWindow::onSelection(std::function<void()> run) {
  return [this, run = std::move(run)] {
    const QWidget* focus = QApplication::focusWidget();
    if (focus && (m_outline->isAncestorOf(focus) || m_plan->isAncestorOf(focus))) m_scene->scope().leaveTo(0);
    run();
  };
}

/// A command with a plain letter as its key, which the other panes need to search by.
QAction* MainWindow::addCanvasKey(QMenu& menu, const QString& text, Qt::Key key, std::function<void()> run) {
  QAction* action = addCommand(&menu, text, QKeySequence(key), onSelection(std::move(run)));
  action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
  addToCanvas(*action);
  m_plan->lanesView()->addAction(action);
  return action;
}

void MainWindow::createFileMenu() {
  QMenu* menu = menuBar()->addMenu(tr("&File"));
  auto* toolBar = findChild<QToolBar*>(QStringLiteral("fileBar"));
  toolBar->addAction(addCommand(
      menu, tr("&New"), QKeySequence::New, [this] { m_files->newDocument(); }, QStringLiteral("new")));
  addCommand(menu, tr("New &window"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_N), [this] { m_files->newWindow(); });
  QMenu* templates = menu->addMenu(tr("New from &template"));
  for (const DocumentTemplate& entry : documentTemplates()) {
    QAction* action = templates->addAction(QStringLiteral("%1: %2").arg(toQt(entry.name), toQt(entry.summary)));
    connect(action, &QAction::triggered, this,
            [this, text = entry.text, name = toQt(entry.name)] { m_files->newFromTemplate(text, name); });
  }
  toolBar->addAction(addCommand(
      menu, tr("&Open..."), QKeySequence::Open, [this] { m_files->chooseAndOpen(); }, QStringLiteral("open")));
  QMenu* recent = menu->addMenu(tr("Open &recent"));
  connect(recent, &QMenu::aboutToShow, m_files, [this, recent] { m_files->fillRecentMenu(*recent); });
  m_examplesMenu = menu->addMenu(tr("Open measured &example"));
  m_examplesMenu->setToolTipsVisible(true);
  connect(m_examplesMenu, &QMenu::aboutToShow, m_files, [this] { m_files->fillExamplesMenu(*m_examplesMenu); });
  menu->addSeparator();
  m_save = addCommand(
      menu, tr("&Save"), QKeySequence::Save, [this] { m_files->save(); }, QStringLiteral("save"));
  toolBar->addAction(m_save);
  addCommand(menu, tr("Save &as..."), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_S), [this] { m_files->saveAs(); });
  addCommand(menu, tr("&Export the pipeline..."), QKeySequence(Qt::CTRL | Qt::Key_E),
             [this] { m_files->exportPipeline(); });
  menu->addSeparator();
  m_comparisonCommands->addFileCommands(*menu);
  menu->addSeparator();
  addDrawingCommands(*menu);
  menu->addSeparator();
  addCommand(menu, tr("&Quit"), QKeySequence::Quit, [this] { close(); });
}

void MainWindow::addDrawingCommands(QMenu& menu) {
  QAction* exportDrawing = addCommand(
      &menu, tr("E&xport drawing..."), {}, [this] { m_files->exportDrawing(); }, QStringLiteral("drawing"));
  exportDrawing->setToolTip(tr("Export a drawing of the pipeline, or drag it from here to another window"));
  addCommand(&menu, tr("&Copy drawing"), {}, [this] { m_files->copyDrawing(); });
  addCommand(&menu, tr("&Print..."), QKeySequence::Print, [this] { m_files->printDrawing(); });
  auto* toolBar = findChild<QToolBar*>(QStringLiteral("fileBar"));
  toolBar->addAction(exportDrawing);
  new DragSource(
      *toolBar->widgetForAction(exportDrawing), [](QPoint) { return true; },
      [this] { return m_files->drawingToDrag(); });
}

void MainWindow::createEditMenu() {
  QMenu* menu = menuBar()->addMenu(tr("&Edit"));
  addUndoCommands(*menu);
  menu->addSeparator();
  addSelectionCommands(*menu);
  menu->addSeparator();
  addLayoutCommands(*menu);
  menu->addSeparator();
  addFindCommands(*menu);
}

void MainWindow::addUndoCommands(QMenu& menu) {
  auto* toolBar = findChild<QToolBar*>(QStringLiteral("fileBar"));
  m_undo = addCommand(
      &menu, tr("&Undo"), QKeySequence::Undo, [this] { m_session.undo(); }, QStringLiteral("undo"));
  m_redo = addCommand(
      &menu, tr("&Redo"), QKeySequence::Redo, [this] { m_session.redo(); }, QStringLiteral("redo"));
  // All keys of the platform, as fields know them: Ctrl+Y and Ctrl+Shift+Z may both redo.
  m_undo->setShortcuts(QKeySequence::Undo);
  m_redo->setShortcuts(QKeySequence::Redo);
  addCommand(&menu, tr("&History"), QKeySequence(Qt::CTRL | Qt::ALT | Qt::Key_Z), [this] {
    showPane(m_historyDock->objectName());
    focusPane(*m_history);
  });
  toolBar->addSeparator();
  toolBar->addAction(m_undo);
  toolBar->addAction(m_redo);
}

/// They are the context menu of the canvas and of the outline, too.
void MainWindow::addSelectionCommands(QMenu& menu) {
  const auto addBoth = [&](const QString& text, const QKeySequence& shortcut, std::function<void()> run) {
    addToCanvas(*addCommand(&menu, text, shortcut, onSelection(std::move(run))));
  };
  addBoth(tr("&Copy"), QKeySequence::Copy, [this] { m_scene->copySelected(); });
  // Keys that mean something else to tables and lists.
  const auto addHere = [&](const QString& text, const QKeySequence& shortcut, std::function<void()> run) {
    QAction* const action = addCommand(&menu, text, shortcut, onSelection(std::move(run)));
    action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    addToCanvas(*action);
  };
  addHere(tr("Cu&t"), QKeySequence::Cut, [this] { m_scene->cutSelected(); });
  addBoth(tr("&Paste"), QKeySequence::Paste, [this] { m_scene->paste(); });
  addBoth(tr("D&uplicate"), QKeySequence(Qt::CTRL | Qt::Key_D), [this] { m_scene->duplicateSelected(); });
  addHere(tr("&Delete"), QKeySequence::Delete, [this] { m_scene->removeSelected(Reconnect::No); });
  addHere(tr("Delete and re&connect"), QKeySequence(Qt::CTRL | Qt::Key_Delete),
          [this] { m_scene->removeSelected(Reconnect::Yes); });
  menu.addSeparator();
  addCanvasKey(menu, tr("&Bypass or use again"), Qt::Key_D, [this] { m_scene->toggleBypass(); });
  addBoth(tr("Rep&lace op..."), QKeySequence(Qt::CTRL | Qt::Key_H), [this] { m_view->openReplace(); });
  addCanvasKey(menu, tr("Draw a w&ire"), Qt::Key_W, [this] { m_view->drawWire(); });
  addCanvasKey(menu, tr("S&witch fusion here off or on"), Qt::Key_T, [this] { m_scene->toggleFusions(); });
  menu.addSeparator();
  addBoth(tr("&Make block..."), QKeySequence(Qt::CTRL | Qt::Key_M), [this] { makeBlock(); });
  addBoth(tr("&Expand block"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_M), [this] { m_scene->expandSelected(); });
  addBoth(tr("&Fold layers that repeat"), {}, [this] { m_scene->foldRepeats(); });
  m_blockCommands->addTo(menu);
  addBoth(tr("Repeat op..."), QKeySequence(Qt::CTRL | Qt::Key_R), [this] { repeatOp(); });
  auto* frames = new FrameCommands(*m_scene, *m_view, m_theme, this);
  frames->addMenu(menu);
}

void MainWindow::addLayoutCommands(QMenu& menu) {
  QAction* const all = addCommand(&menu, tr("Select &all"), QKeySequence::SelectAll, onSelection([this] {
    QSet<QString> ids;
    for (const DocumentOp& op : m_scene->scope().document().ops()) ids.insert(toQt(op.id));
    m_scene->scope().select(ids);
  }));
  all->setShortcutContext(Qt::WidgetWithChildrenShortcut);  // tables have rows to select
  addToCanvas(*all);
  addCommand(&menu, tr("Select all &before"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Left),
             onSelection([this] { m_scene->selectReachable(Direction::Upstream); }));
  addCommand(&menu, tr("Select all be&hind"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Right),
             onSelection([this] { m_scene->selectReachable(Direction::Downstream); }));
  addCommand(&menu, tr("&Insert op..."), QKeySequence(Qt::CTRL | Qt::Key_Space), [this] { m_view->openSearch(); });
  addCommand(
      &menu, tr("&Lay out"), QKeySequence(Qt::CTRL | Qt::Key_L),
      [this] {
        if (m_scene->layOut()) m_view->fit();
      },
      QStringLiteral("layout"));
  createArrangeMenu(menu);
}

void MainWindow::addFindCommands(QMenu& menu) {
  addCommand(&menu, tr("&Find op..."), QKeySequence::Find, [this] { m_view->openFind(); });
  addCommand(&menu, tr("Find ne&xt"), QKeySequence(Qt::Key_F3), [this] { m_view->findNext(1); });
  addCommand(&menu, tr("Find pre&vious"), QKeySequence(Qt::SHIFT | Qt::Key_F3), [this] { m_view->findNext(-1); });
  addCommand(&menu, tr("&Next problem"), QKeySequence(Qt::Key_F8), [this] { m_problems->selectNext(1); });
  addCommand(&menu, tr("Previous pro&blem"), QKeySequence(Qt::SHIFT | Qt::Key_F8),
             [this] { m_problems->selectNext(-1); });
  m_comparisonCommands->addEditCommands(menu);
}

void MainWindow::createArrangeMenu(QMenu& editMenu) {
  QMenu* menu = editMenu.addMenu(tr("&Arrange selected"));
  const auto add = [&](const QString& text, Arrangement arrangement) {
    addCommand(menu, text, {}, onSelection([this, arrangement] { m_scene->arrangeSelected(arrangement); }));
  };
  add(tr("Align &left"), Arrangement::Left);
  add(tr("Align &centres"), Arrangement::Centre);
  add(tr("Align &right"), Arrangement::Right);
  menu->addSeparator();
  add(tr("Align &top"), Arrangement::Top);
  add(tr("Align &middles"), Arrangement::Middle);
  add(tr("Align &bottom"), Arrangement::Bottom);
  menu->addSeparator();
  add(tr("Space evenly &across"), Arrangement::SpaceAcross);
  add(tr("Space evenly &down"), Arrangement::SpaceDown);
  menu->addSeparator();
  const auto addMove = [&](const QString& text, Qt::Key key, QPoint step) {
    addCommand(menu, text, QKeySequence(Qt::ALT | key), onSelection([this, step] { m_scene->moveSelected(step); }));
  };
  addMove(tr("Move to the left"), Qt::Key_Left, {-1, 0});
  addMove(tr("Move to the right"), Qt::Key_Right, {1, 0});
  addMove(tr("Move up"), Qt::Key_Up, {0, -1});
  addMove(tr("Move down"), Qt::Key_Down, {0, 1});
}

void MainWindow::createViewMenu() {
  QMenu* menu = menuBar()->addMenu(tr("&View"));
  addCommand(
      menu, tr("&Fit"), QKeySequence(Qt::CTRL | Qt::Key_9), [this] { m_view->fit(); }, QStringLiteral("fit"));
  addCommand(menu, tr("&100 %"), QKeySequence(Qt::CTRL | Qt::Key_0), [this] { m_view->zoomTo(1.0); });
  auto* bookmarks = new BookmarkCommands(m_session, *m_view, m_persistence == Persistence::Settings, this);
  connect(bookmarks, &BookmarkCommands::hint, this,
          [this](const QString& sentence) { statusBar()->showMessage(sentence, kHintDurationMs); });
  bookmarks->addMenu(*menu);
  menu->addSeparator();
  menu->addMenu(tr("Fusion &hulls"))->addActions(m_hullActions);
  QAction* errors = menu->addAction(tr("&Errors on nodes"));
  errors->setCheckable(true);
  errors->setChecked(true);
  errors->setShortcut(QKeySequence(QStringLiteral("Alt+5")));
  connect(errors, &QAction::toggled, m_scene, &GraphScene::setErrorsVisible);
  QAction* statuses = menu->addAction(tr("R&un status on nodes"));
  statuses->setCheckable(true);
  connect(statuses, &QAction::toggled, m_scene, &GraphScene::setStatusesVisible);
  statuses->setChecked(true);
  auto* labels = new WireLabelCommands(*m_scene, m_persistence == Persistence::Settings, this);
  labels->addMenu(*menu);
  QAction* overview = menu->addAction(tr("&Overview of large pipelines"));
  overview->setCheckable(true);
  overview->setChecked(true);
  connect(overview, &QAction::toggled, m_overview, &OverviewMap::setWanted);
  menu->addSeparator();
  for (QDockWidget* dock : std::as_const(m_docks)) menu->addAction(dock->toggleViewAction());
  addCommand(menu, tr("&Next pane"), QKeySequence(Qt::Key_F6), [this] { focusPane(1); });
  addCommand(menu, tr("Pre&vious pane"), QKeySequence(Qt::SHIFT | Qt::Key_F6), [this] { focusPane(-1); });
  addCommand(menu, tr("Go to the &outline"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_O), [this] { showOutline(); });
  addCommand(menu, tr("&Restore default layout"), {}, [this] { restoreDefaultLayout(); });
  createPanesMenu(*menu);
  menu->addSeparator();
  createThemeMenu(*menu);
}

/// What one looks at while doing something; the rest goes away until it is wanted.
void MainWindow::createPanesMenu(QMenu& viewMenu) {
  QMenu* menu = viewMenu.addMenu(tr("Show panes &for"));
  const auto add = [&](const QString& text, const QStringList& hidden, const QString& front) {
    addCommand(menu, text, {}, [this, hidden, front] {
      restoreDefaultLayout();
      for (QDockWidget* dock : std::as_const(m_docks)) dock->setVisible(!hidden.contains(dock->objectName()));
      showPane(front);
    });
  };
  const QString palette = QStringLiteral("palette");
  const QString inspector = QStringLiteral("inspector");
  const QString whyNot = QStringLiteral("whyNot");
  const QString suggestions = QStringLiteral("suggestions");
  add(tr("&Designing"), {}, QStringLiteral("problems"));
  add(tr("&Explaining fusions"), {palette, inspector}, QStringLiteral("rules"));
  add(tr("&Profiling"), {palette, inspector, whyNot, suggestions}, QStringLiteral("timings"));
  add(tr("&Comparing"), {palette, inspector, whyNot, suggestions}, QStringLiteral("changes"));
}

void MainWindow::createThemeMenu(QMenu& viewMenu) {
  QMenu* menu = viewMenu.addMenu(tr("&Theme"));
  auto* group = new QActionGroup(this);
  const auto add = [&](const QString& text, ThemeChoice choice) {
    QAction* action = group->addAction(menu->addAction(text));
    action->setCheckable(true);
    action->setChecked(m_theme.choice() == choice);
    connect(action, &QAction::triggered, this, [this, choice] { setTheme(choice); });
  };
  add(tr("&System"), ThemeChoice::System);
  add(tr("&Light"), ThemeChoice::Light);
  add(tr("&Dark"), ThemeChoice::Dark);
}

void MainWindow::createRunMenu() {
  QMenu* menu = menuBar()->addMenu(tr("&Run"));
  menu->addAction(m_runBar->runAction());
  connect(m_runBar->runAction(), &QAction::triggered, this, [this] {
    commitTypedField();
    m_session.run();
  });
  QAction* const numerics =
      addCommand(menu, tr("Measure &numerics"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Return), [this] {
        commitTypedField();
        m_session.measureNumerics();
      });
  const auto followRunning = [this, numerics] { numerics->setEnabled(!m_session.isRunning()); };
  connect(&m_session, &Session::runningChanged, numerics, followRunning);
  addAction(m_runBar->refusalAction());
  addTensorCommand(*menu);
  addCommand(menu, tr("S&weep sizes and recipes"), {}, [this] {
    showPane(m_sweepDock->objectName());
    focusPane(*m_sweep);
  });
  menu->addAction(m_runBar->stopAction());
  menu->addSeparator();
  auto* commands = new RunCommands(m_session, *this);
  connect(commands, &RunCommands::message, this, &MainWindow::showMessage);
  commands->addTimingMenu(*menu);
  commands->addCommands(*menu);
  auto* escapeAction = new QAction(this);
  escapeAction->setShortcut(QKeySequence(Qt::Key_Escape));
  connect(escapeAction, &QAction::triggered, this, &MainWindow::escape);
  addAction(escapeAction);
}

/// Of the selected op, from the canvas and the outline, too.
void MainWindow::addTensorCommand(QMenu& menu) {
  addToCanvas(*addCommand(&menu, tr("&Look at tensors"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_T), [this] {
    commitTypedField();
    lookAtTensors();
  }));
}

void MainWindow::createHelpMenu() {
  QMenu* menu = menuBar()->addMenu(tr("&Help"));
  addCommand(menu, tr("&Find a command..."), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_P),
             [this] { openCommandPalette(*menuBar(), this); });
  addCommand(menu, tr("&Keyboard shortcuts"), QKeySequence(Qt::Key_F1),
             [this] { ShortcutsDialog(*m_shortcuts, this).exec(); });
  menu->addSeparator();
  for (const GuidePage& page : guidePages())
    addCommand(menu, toQt(page.title), {}, [this, name = toQt(page.name)] { showGuide(name); });
  menu->addSeparator();
  addCommand(menu, tr("&Start page"), {}, [this] { showStartPage(); });
  QMenu* tourMenu = menu->addMenu(tr("Guided &tours"));
  tourMenu->setToolTipsVisible(true);
  for (const Tour& tour : tours())
    addCommand(tourMenu, tour.title, {}, [this, &tour] { startTour(tour); })->setToolTip(tour.summary);
  addCommand(menu, tr("&About Fuseline"), {}, [this] { showAbout(m_devices, this); });
}

void MainWindow::startTour(const Tour& tour) {
  m_tourBar->end();
  if (m_files->newFromTemplate(findTemplate(tour.pipeline)->text, toQt(tour.pipeline))) m_tourBar->start(tour);
}

void MainWindow::createStartPage() {
  m_startPage = new StartPage(m_theme, m_session.settings(), this);
  m_startPage->setShownAtStart(wantsStartPage());
  m_startPage->setReopening(reopens());
  connect(m_startPage, &StartPage::openWanted, m_files, &FileCommands::chooseAndOpen);
  connect(m_startPage, &StartPage::templateChosen, m_files,
          [this](const QString& name, const std::string& text) { m_files->newFromTemplate(text, name); });
  connect(m_startPage, &StartPage::fileChosen, m_files, [this](const QString& path) { m_files->openAll({path}); });
  connect(m_startPage, &StartPage::tourChosen, this, &MainWindow::startTour);
  connect(m_startPage, &StartPage::reopeningChanged, this, [this](bool isReopening) {
    if (m_persistence == Persistence::Settings) QSettings().setValue(kReopensKey, isReopening);
  });
  connect(m_startPage, &StartPage::shownAtStartChanged, this, [this](bool isShown) {
    if (m_persistence == Persistence::Settings) QSettings().setValue(kStartPageKey, isShown);
  });
}

void MainWindow::createFileBar() {
  auto* bar = new FileBar(m_session, m_files->watch(), m_theme, centralWidget());
  static_cast<QVBoxLayout*>(centralWidget()->layout())->insertWidget(0, bar);
  connect(bar, &FileBar::reloadWanted, m_files, &FileCommands::reload);
  connect(bar, &FileBar::compareWanted, m_files, &FileCommands::compareWithFileWanted);
  connect(m_files, &FileCommands::compareWithFileWanted, this, [this] { compareWith(m_session.path()); });
}

void MainWindow::createToolBars() {
  auto* fileBar = addToolBar(tr("File"));
  fileBar->setObjectName(QStringLiteral("fileBar"));
  fileBar->setIconSize({18, 18});
  m_runBar = new RunBar(m_session, m_theme, this);
  addToolBar(m_runBar);
  auto* hullBar = addToolBar(tr("Fusion hulls"));
  hullBar->setObjectName(QStringLiteral("hullBar"));
  hullBar->addWidget(new QLabel(tr("Hulls: "), hullBar));
  auto* group = new QActionGroup(this);
  const auto add = [&](const QString& text, const QString& key, HullFilter filter) {
    QAction* action = group->addAction(text);
    action->setCheckable(true);
    action->setChecked(filter == HullFilter::Both);
    action->setShortcut(QKeySequence(key));
    action->setToolTip(tr("Outline the fused ops of this plan: %1 (%2)").arg(text, key));
    connect(action, &QAction::triggered, this, [this, filter] { setHullFilter(filter); });
    hullBar->addAction(action);
    m_hullActions.append(action);
  };
  add(tr("Forward"), QStringLiteral("Alt+1"), HullFilter::Forward);
  add(tr("Backward"), QStringLiteral("Alt+2"), HullFilter::Backward);
  add(tr("Both"), QStringLiteral("Alt+3"), HullFilter::Both);
  add(tr("None"), QStringLiteral("Alt+4"), HullFilter::None);
  for (QToolBar* bar : findChildren<QToolBar*>())
    connect(bar, &QToolBar::orientationChanged, this, &MainWindow::refreshOverflowIcons);
}

/// Qt draws the button of a tool bar that is cut off in black, whatever the palette.
void MainWindow::refreshOverflowIcons() {
  for (auto* more : findChildren<QToolButton*>(QStringLiteral("qt_toolbar_ext_button")))
    more->setIcon(m_theme.icon(QStringLiteral("more")));
}

QToolButton* MainWindow::addStatusButton(const QString& text, const QString& tip, std::function<void()> run) {
  auto* button = new QToolButton(this);
  button->setAutoRaise(true);
  button->setText(text);
  button->setToolTip(tip);
  button->setFocusPolicy(Qt::TabFocus);
  connect(button, &QToolButton::clicked, this, std::move(run));
  return button;
}

void MainWindow::createStatusBar() {
  m_hint = new QLabel(this);
  m_selected = new QLabel(this);
  m_counts =
      addStatusButton(tr("No problems"), tr("Show the problems"), [this] { showPane(m_problemsDock->objectName()); });
  m_zoom = addStatusButton(tr("100 %"), tr("Show everything; when all is in sight, in its true size"), [this] {
    const double before = m_view->zoom();
    m_view->fit();
    if (qFuzzyCompare(before, m_view->zoom())) m_view->zoomTo(1.0);
  });
  statusBar()->addWidget(m_hint, 1);
  for (QWidget* widget : {static_cast<QWidget*>(m_runBar->progress()), static_cast<QWidget*>(m_selected),
                          static_cast<QWidget*>(m_counts), static_cast<QWidget*>(m_zoom)})
    statusBar()->addPermanentWidget(widget);
  connect(&m_scene->scope(), &CanvasScope::selectionChanged, this, [this] {
    const qsizetype count = m_scene->scope().selection().size();
    m_selected->setText(count == 0 ? QString() : tr("%1 selected").arg(count));
  });
  connect(m_scene, &GraphScene::hint, this, [this](const QString& sentence) {
    if (!sentence.isEmpty()) statusBar()->clearMessage();  // which would cover it
    m_hint->setText(sentence);
  });
  connect(m_outline, &OutlinePanel::hint, this,
          [this](const QString& sentence) { statusBar()->showMessage(sentence, kHintDurationMs); });
  connect(m_view, &GraphView::zoomChanged, this,
          [this](double factor) { m_zoom->setText(tr("%1 %").arg(qRound(factor * 100))); });
  connect(m_problems, &ProblemsPanel::countsChanged, this, [this](int numErrors, int numWarnings) {
    const QString text = counted(numErrors, tr("error"), tr("errors")) + QStringLiteral(", ") +
                         counted(numWarnings, tr("warning"), tr("warnings"));
    m_counts->setText(numErrors + numWarnings == 0 ? tr("No problems") : text);
    m_problemsDock->setWindowTitle(numErrors + numWarnings == 0 ? tr("Problems")
                                                                : tr("Problems (%1)").arg(numErrors + numWarnings));
  });
}

void MainWindow::connectSession() {
  connect(&m_session, &Session::documentChanged, this, &MainWindow::refreshTitle);
  connect(&m_session, &Session::documentChanged, this, &MainWindow::refreshUndo);
  connect(&m_session, &Session::documentReplaced, this, [this] {
    m_message->hide();
    m_startPage->hide();
    m_isFreshlyOpened = true;
    showReadOnly();
    m_view->fit();
  });
  connect(&m_session, &Session::analysisChanged, this, [this] {
    // A file that cannot run shows why at once; later problems only count, so that no tab jumps while one types.
    if (std::exchange(m_isFreshlyOpened, false) && !m_session.analysis()->isRunnable()) m_problemsDock->raise();
  });
  connect(&m_session, &Session::editRefused, this,
          [this](const QString& sentence) { statusBar()->showMessage(sentence, kHintDurationMs); });
  connect(&m_session, &Session::runStarted, m_message, &QWidget::hide);
  connect(&m_session, &Session::runFailed, this,
          [this](const QString& sentence) { showMessage(sentence, Severity::Error); });
  connect(&m_session, &Session::runFinished, this, &MainWindow::showTimings);
  connect(&m_session, &Session::numericsFinished, m_numericsDock, &QDockWidget::raise);
  connect(m_numerics, &NumericsPanel::tensorWanted, this, &MainWindow::lookAt);
  connect(m_tensor, &TensorPanel::message, this, [this](const QString& sentence) { showMessage(sentence); });
  connect(&m_session.worker(), &WorkerClient::devicesReceived, this, &MainWindow::showDevices);
  connect(&m_session, &Session::runTargetChanged, this, [this] {
    if (m_persistence == Persistence::Settings) QSettings().setValue(kDeviceKey, toQt(m_session.runTarget().device));
  });
  connect(&m_session, &Session::problemsWanted, this, [this] {
    showPane(m_problemsDock->objectName());
    m_problems->selectFirst();
  });
  connect(m_runBar, &RunBar::refused, this,
          [this](const QString& sentence) { showMessage(sentence, Severity::Error); });
  connect(m_problems, &ProblemsPanel::explanationWanted, this,
          [this](const QString& code) { showGuide(QStringLiteral("problems"), code); });
  m_blockCommands->follow(*m_outline);
  m_blockCommands->follow(*m_plan);
  m_blockCommands->follow(*m_problems);
  m_blockCommands->lead(*m_inspector);
  connect(m_outline, &OutlinePanel::propertiesRequested, m_inspector, &InspectorPanel::focusFirstField);
  connect(&m_theme, &Theme::changed, this, &MainWindow::refreshIcons);
}

void MainWindow::connectFiles() {
  connect(m_tourBar, &TourBar::paneWanted, this, &MainWindow::showPane);
  connect(m_tourBar, &TourBar::interrupted, this,
          [this](const QString& sentence) { statusBar()->showMessage(sentence, kHintDurationMs); });
  connect(m_files, &FileCommands::message, this, &MainWindow::showMessage);
  connect(m_files, &FileCommands::hint, this,
          [this](const QString& sentence) { statusBar()->showMessage(sentence, kHintDurationMs); });
  connect(m_files, &FileCommands::runOpened, this, &MainWindow::showTimings);
}

void MainWindow::connectRuns() {
  RunHistory& history = m_runs->history();
  if (m_persistence == Persistence::Settings) history.setKeepsRuns(QSettings().value(kKeepRunsKey, false).toBool());
  connect(&history, &RunHistory::keepsRunsChanged, this, [this, &history] {
    if (m_persistence == Persistence::Settings) QSettings().setValue(kKeepRunsKey, history.keepsRuns());
  });
  connect(&history, &RunHistory::failed, this,
          [this](const QString& sentence) { showMessage(sentence, Severity::Error); });
  connect(m_runs, &RunsPanel::openWanted, m_files, &FileCommands::openListedRun);
  connect(m_sweep, &SweepPanel::openWanted, m_files, &FileCommands::openListedRun);
  connect(m_sweep, &SweepPanel::message, this, [this](const QString& sentence) { showMessage(sentence); });
  connect(m_flame, &FlamePanel::message, this, [this](const QString& sentence) { showMessage(sentence); });
}

/// What the status line says is gone after some seconds.
void MainWindow::connectLog() {
  connect(statusBar(), &QStatusBar::messageChanged, this, [this](const QString& sentence) {
    if (!sentence.isEmpty()) m_log->log().add(Severity::Note, sentence);
  });
  const auto note = [this](const QString& sentence) {
    m_log->log().add(Severity::Note, sentence, MessageLog::Repeated::Kept);
  };
  connect(&m_session, &Session::measured, this,
          [this, note] { note(tr("Measured: %1").arg(summaryOf(m_session.lastRun()->record))); });
  connect(&m_session, &Session::numericsFinished, this, [this, note] {
    if (m_session.lastNumerics()) note(tr("Numerics: %1").arg(summaryOf(m_session.lastNumerics()->report)));
  });
  connect(&m_session, &Session::tensorsCaptured, this, [this, note] {
    if (m_session.lastCapture())
      note(tr("Captured %1.").arg(counted(std::ssize(m_session.lastCapture()->tensors), tr("tensor"), tr("tensors"))));
  });
}

void MainWindow::connectComparison() {
  connect(m_comparisonCommands, &ComparisonCommands::started, this, [this] { showPane(m_changesDock->objectName()); });
  connect(m_comparisonCommands, &ComparisonCommands::refused, this,
          [this](const QString& sentence) { showMessage(sentence, Severity::Error); });
  connect(m_comparison, &PipelineComparison::changed, this, [this] {
    const auto numChanges = static_cast<int>(m_comparison->changes().size());
    m_changesDock->setWindowTitle(numChanges == 0 ? tr("Changes") : tr("Changes (%1)").arg(numChanges));
  });
}

bool MainWindow::compareWith(const QString& path) {
  const Result<void> started = m_comparison->startWithFile(path);
  started ? void(showPane(m_changesDock->objectName())) : showMessage(toQt(started.error().message), Severity::Error);
  return static_cast<bool>(started);
}

void MainWindow::restoreLayout() {
  if (m_persistence == Persistence::None) return;
  const QSettings settings;
  restoreGeometry(settings.value(QStringLiteral("window/geometry")).toByteArray());
  restoreState(settings.value(QStringLiteral("window/state")).toByteArray(), kLayoutVersion);
  setFileFolders(*this, settings.value(kFoldersKey).toMap());
}

// ------------------------------------------------------------------------------------------------------------ showing

void MainWindow::refreshIcons() {
  for (const auto& [action, name] : std::as_const(m_iconActions)) action->setIcon(m_theme.icon(name));
  refreshOverflowIcons();
}

void MainWindow::refreshTitle() {
  setWindowTitle(tr("%1[*]").arg(m_session.displayName()));
  setWindowFilePath(m_session.path());
  setWindowModified(m_session.isModified());
}

void MainWindow::refreshUndo() {
  const History& history = m_session.history();
  m_undo->setEnabled(history.canUndo());
  m_redo->setEnabled(history.canRedo());
  const auto plain = [](const std::string& label) { return toQt(label).replace(u'&', QStringLiteral("&&")); };
  m_undo->setText(history.canUndo() ? tr("&Undo: %1").arg(plain(history.undoLabel())) : tr("&Undo"));
  m_redo->setText(history.canRedo() ? tr("&Redo: %1").arg(plain(history.redoLabel())) : tr("&Redo"));
}

void MainWindow::showMessage(const QString& sentence, Severity severity) {
  m_log->log().add(severity, sentence);
  m_message->setText(sentence);
  m_message->show();
}

void MainWindow::showReadOnly() {
  if (!m_session.document().isReadOnly()) return;
  showMessage(
      tr("This file was written by a newer major version of Fuseline. It is open read-only: what is known is "
         "shown, nothing can be changed."));
}

/// Who looks at the timeline, or at the roofline, sees the run there.
void MainWindow::showTimings() {
  QApplication::alert(this);  // nothing happens where the window has the focus
  const QList<QWidget*> shown = visiblePanes();
  if (!shown.contains(m_timeline) && !shown.contains(m_roofline)) m_timingsDock->raise();
}

void MainWindow::showStartPage() {
  m_startPage->setRecentFiles(m_files->recentFiles());
  m_startPage->setExamples(measuredExamples(m_files->exampleFolders()));
  m_startPage->open();
}

GuideWindow& MainWindow::showGuide(const QString& page, const QString& heading) {
  if (!m_guide) m_guide = new GuideWindow(this);
  m_guide->showPage(page, heading);
  return *m_guide;
}

bool MainWindow::reopens() const {
  return m_persistence == Persistence::Settings && QSettings().value(kReopensKey, true).toBool();
}

QString MainWindow::fileToReopen() const {
  const QString file = reopens() ? QSettings().value(kLastFileKey).toString() : QString();
  return QFileInfo::exists(file) ? file : QString();
}

bool MainWindow::wantsStartPage() const {
  return m_persistence == Persistence::Settings && QSettings().value(kStartPageKey, true).toBool();
}

bool MainWindow::showPane(const QString& name) {
  if (name == m_startPage->objectName()) {
    showStartPage();
    return true;
  }
  const auto dock = std::ranges::find(m_docks, name, &QDockWidget::objectName);
  if (dock == m_docks.end()) return false;
  (*dock)->show();
  (*dock)->raise();
  return true;
}

QStringList MainWindow::paneNames() const {
  QStringList names = {m_startPage->objectName()};
  for (const QDockWidget* dock : m_docks) names.append(dock->objectName());
  return names;
}

void MainWindow::showDevices(const Json& devices) {
  m_devices = devices;
  m_runBar->setDevices(devices);
  if (m_persistence == Persistence::Settings) m_runBar->chooseDevice(QSettings().value(kDeviceKey).toString());
  sayMissingDevices(devices);
}

/// What a device lacks stands in the list of devices; here it is said once, and again when it is something else.
void MainWindow::sayMissingDevices(const Json& devices) {
  if (m_persistence == Persistence::None) return;
  QStringList missing;
  for (const Json& device : devices)
    if (const std::string reason = device.value("reason", ""); !reason.empty())
      missing.append(QStringLiteral("%1: %2").arg(toQt(device.value("id", "")), toQt(reason)));
  QSettings settings;
  if (missing == settings.value(kMissingDevicesKey).toStringList()) return;
  settings.setValue(kMissingDevicesKey, missing);
  if (!missing.isEmpty()) showMessage(missing.join(u'\n'));
}

void MainWindow::setTheme(ThemeChoice choice) {
  m_theme.apply(choice);
  if (m_persistence == Persistence::Settings) {
    QSettings().setValue(QStringLiteral("view/theme"), static_cast<int>(choice));
  }
}

void MainWindow::setHullFilter(HullFilter filter) { m_scene->setHullFilter(filter); }

void MainWindow::escape() {
  if (m_startPage->isVisible()) return m_startPage->hide();
  if (m_scene->isDrawingWire()) return m_view->cancelWire();
  if (m_view->cancelCut() || m_scene->cancelCopy()) return;
  if (auto* const field = qobject_cast<QLineEdit*>(QApplication::focusWidget()))
    return field->isClearButtonEnabled() ? field->clear() : void();  // a filter; who types does not stop a run
  if (qobject_cast<QAbstractSpinBox*>(QApplication::focusWidget())) return;
  if (m_session.isRunning()) return m_session.cancelRun();
  m_scene->scope().select({});
  m_scene->clearSelection();
}

void MainWindow::makeBlock() {
  if (m_scene->scope().selection().isEmpty()) return m_hint->setText(tr("Select the ops that shall become a block."));
  const PipelineDocument& document = m_session.document();
  std::string free = "Block";
  for (int number = 2; document.findBlock(free); ++number) free = "Block" + std::to_string(number);
  bool isAccepted = false;
  const QString name = QInputDialog::getText(this, tr("Make block"), tr("Name of the block"), QLineEdit::Normal,
                                             toQt(free), &isAccepted);
  if (isAccepted) m_scene->makeBlockOfSelected(name.trimmed().toStdString());
}

void MainWindow::repeatOp() {
  constexpr int kMostTimes = 1000;
  const QString id = m_scene->scope().singleSelection();
  if (!m_scene->scope().document().findOp(id.toStdString()))
    return m_hint->setText(tr("Select the op or the block to repeat."));
  bool isAccepted = false;
  const int count =
      QInputDialog::getInt(this, tr("Repeat %1").arg(id), tr("How many in a row"), 2, 2, kMostTimes, 1, &isAccepted);
  if (isAccepted) m_scene->repeatSelected(count);
}

QList<QWidget*> MainWindow::visiblePanes() const {
  QList<QWidget*> panes;
  for (const QDockWidget* dock : m_docks) panes.append(dock->widget());
  panes.insert(panes.indexOf(m_palette) + 1, m_view);
  // Those behind another tab stand outside of the window.
  panes.removeIf([](const QWidget* pane) {
    const QRect area(pane->mapTo(pane->window(), QPoint()), pane->size());
    return !pane->isVisible() || !area.intersects(pane->window()->rect());
  });
  return panes;
}

/// Tab belongs to the canvas, so that panes have a key of their own, as in other editors.
void MainWindow::focusPane(int step) {
  const QList<QWidget*> panes = visiblePanes();
  const QWidget* focus = QApplication::focusWidget();
  const auto hasFocus = [&](const QWidget* pane) { return focus && (pane == focus || pane->isAncestorOf(focus)); };
  const auto current = std::ranges::find_if(panes, hasFocus) - panes.begin();
  const bool isElsewhere = current == panes.size();  // in a tool bar: the first pane comes next, or the last one
  const qsizetype next = isElsewhere ? (step > 0 ? 0 : panes.size() - 1) : current + step;
  focusPane(*panes[(next + panes.size()) % panes.size()]);
}

void MainWindow::focusPane(QWidget& pane) {
  pane.activateWindow();  // it may float
  firstInPane(pane).setFocus(Qt::ShortcutFocusReason);
  m_paneRing->showAround(pane);
}

void MainWindow::lookAt(const QString& tensor) {
  showPane(m_tensorDock->objectName());
  m_tensor->lookAt(tensor);
}

void MainWindow::lookAtTensors() {
  showPane(m_tensorDock->objectName());
  m_tensor->lookAtSelected();
}

void MainWindow::showOutline() {
  showPane(m_outlineDock->objectName());
  focusPane(*m_outline);
}

// -------------------------------------------------------------------------------------------------------------- files

void MainWindow::offerRecovery(Autosave& autosave) {
  m_files->setAutosave(autosave);
  m_log->offerFolder(tr("Open the folder of unsaved work"), autosave.folder());
  auto* bar = new RecoveryBar(autosave, m_theme, centralWidget());
  static_cast<QVBoxLayout*>(centralWidget()->layout())->insertWidget(0, bar);
  connect(bar, &RecoveryBar::recoveryWanted, this, [this, &autosave] {
    if (!m_files->mayDiscard()) return;
    const bool isOutdated = autosave.isFirstOutdated();
    autosave.recoverFirst();
    if (isOutdated) m_files->watch().distrust();
  });
  connect(&autosave, &Autosave::failed, this,
          [this](const QString& sentence) { showMessage(sentence, Severity::Error); });
}

/// Qt shortens the names of tabs to nothing before it lets them be scrolled.
void MainWindow::childEvent(QChildEvent* event) {
  QMainWindow::childEvent(event);
  auto* tabs = event->polished() ? qobject_cast<QTabBar*>(event->child()) : nullptr;
  if (!tabs) return;
  tabs->setElideMode(Qt::ElideNone);
  tabs->setUsesScrollButtons(true);
}

void MainWindow::closeEvent(QCloseEvent* event) {
  if (!m_files->mayClose()) {
    event->ignore();
    return;
  }
  if (m_persistence == Persistence::Settings) {
    QSettings settings;
    settings.setValue(QStringLiteral("window/geometry"), saveGeometry());
    settings.setValue(QStringLiteral("window/state"), saveState(kLayoutVersion));
    settings.setValue(kLastFileKey, m_session.path());
    settings.setValue(kFoldersKey, fileFolders(*this));
    m_viewMemory->remember();
  }
  event->accept();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  const QList<QUrl> urls = event->mimeData()->urls();
  if (!urls.isEmpty() && std::ranges::all_of(urls, &QUrl::isLocalFile)) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  QStringList paths;
  for (const QUrl& url : event->mimeData()->urls()) paths.append(url.toLocalFile());
  m_files->openAll(paths);
}

}  // namespace fuseline::ui
