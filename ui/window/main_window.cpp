// The main window: construction in named steps, then what leads from one part to another.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/main_window.h"

#include "core/edit/edit_extent.h"
#include "ui/canvas/canvas_commands.h"
#include "ui/canvas/change_marks.h"
#include "ui/canvas/copy_gesture.h"
#include "ui/canvas/overview_map.h"
#include "ui/canvas/wire_gesture.h"
#include "ui/changes/changes_panel.h"
#include "ui/compare/base_canvas.h"
#include "ui/flame/flame_panel.h"
#include "ui/fusions/plan_panel.h"
#include "ui/fusions/suggestions_panel.h"
#include "ui/inspector/inspector_panel.h"
#include "ui/library/palette_panel.h"
#include "ui/numerics/numerics_panel.h"
#include "ui/numerics/tensor_panel.h"
#include "ui/outline/outline_panel.h"
#include "ui/problems/problems_panel.h"
#include "ui/roofline/roofline_panel.h"
#include "ui/runs/model_weights.h"
#include "ui/runs/run_bar.h"
#include "ui/runs/runs_panel.h"
#include "ui/session/baseline_memory.h"
#include "ui/session/large_pipeline.h"
#include "ui/session/last_edits.h"
#include "ui/sweep/sweep_panel.h"
#include "ui/theme/format.h"
#include "ui/timeline/timeline_panel.h"
#include "ui/tours/tour_bar.h"
#include "ui/widgets/combo_accessible.h"
#include "ui/widgets/file_choice.h"
#include "ui/widgets/quiet_wheel.h"
#include "ui/widgets/tab_icons.h"
#include "ui/window/block_bar.h"
#include "ui/window/block_commands.h"
#include "ui/window/comparison_commands.h"
#include "ui/window/device_memory.h"
#include "ui/window/drops/file_drop.h"
#include "ui/window/edit_menu.h"
#include "ui/window/file_bar.h"
#include "ui/window/file_menu.h"
#include "ui/window/first_size.h"
#include "ui/window/help_menu.h"
#include "ui/window/hull_bar.h"
#include "ui/window/log_panel.h"
#include "ui/window/menu_builder.h"
#include "ui/window/recovery_bar.h"
#include "ui/window/run_menu.h"
#include "ui/window/selection_commands.h"
#include "ui/window/status_line.h"
#include "ui/window/view_memory.h"
#include "ui/window/view_menu.h"

#include <QAbstractSpinBox>
#include <QApplication>
#include <QCloseEvent>
#include <QLineEdit>
#include <QMenuBar>
#include <QScreen>
#include <QSettings>
#include <QSplitter>
#include <QStatusBar>
#include <QTabBar>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>

#include <algorithm>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr auto kKeepRunsKey = "run/keepsRuns";
constexpr auto kFoldersKey = "session/folders";
constexpr auto kGeometryKey = "window/geometry";
constexpr int kPalettePauseMs = 500;  // after an edit of a large pipeline

}  // namespace

MainWindow::MainWindow(Session& session, Theme& theme, Persistence persistence, QWidget* parent)
    : QMainWindow(parent), m_session(session), m_theme(theme), m_persistence(persistence) {
  installComboAccessibility();
  QuietWheel::install();
  setDockOptions(AnimatedDocks | AllowNestedDocks | AllowTabbedDocks);
  resize(1600, 1000);
  createCentre();
  createPanes();
  createToolBars();
  createMenus();
  createStatusLine();
  createFileBar();
  if (persistence == Persistence::Settings) m_viewMemory = new ViewMemory(session, *m_view, this);
  if (persistence == Persistence::Settings) new BaselineMemory(session, this);
  connectFiles();
  connectSession();
  connectPanes();
  connectRuns();
  connectComparison();
  m_panes->restoreDefaultLayout();
  restoreLayout();
  refreshOverflowIcons();
  refreshTitle();
}

MainWindow::~MainWindow() = default;

// ------------------------------------------------------------------------------------------------------ construction

void MainWindow::createCentre() {
  auto* centre = new QWidget(this);
  m_scene = new GraphScene(m_session, m_theme, this);
  m_view = new GraphView(*m_scene, m_session, m_theme, centre);
  m_blockCommands = new BlockCommands(*m_scene, *m_view, this);
  m_overview = new OverviewMap(*m_scene, *m_view, m_theme);
  m_files = new FileCommands(m_session, m_persistence == Persistence::Settings, *this);
  m_message = new MessageBar(m_theme, centre);
  m_tourBar = new TourBar(m_session, m_theme, centre);
  auto* layout = new QVBoxLayout(centre);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(1);  // between bars
  layout->addWidget(m_tourBar);
  layout->addWidget(m_message);
  layout->addWidget(new BlockBar(m_scene->scope(), m_theme, centre));
  auto* canvases = new QSplitter(centre);
  canvases->addWidget(m_view);
  layout->addWidget(canvases, 1);
  setCentralWidget(centre);
}

void MainWindow::createPanes() {
  m_tabIcons = new TabIcons(*this, m_theme);
  m_comparison = new PipelineComparison(m_session, this);
  m_panes =
      new Panes(*this, *m_view, {m_session, *m_comparison, m_theme, m_persistence, *new RunFilter(m_session, this)});
  m_workspaces = new Workspaces(*m_panes, m_persistence == Persistence::Settings, this);
  menuBar()->setCornerWidget(m_workspaces->makeBar(menuBar()));
  auto* marks = new ChangeMarks(*m_scene, *m_comparison, m_theme, ComparedSide::New, this);
  m_comparisonCommands =
      new ComparisonCommands(m_session, *m_comparison, m_panes->get<ChangesPanel>(), *m_view, *marks, *this);
  auto* canvases = qobject_cast<QSplitter*>(m_view->parentWidget());
  auto* base = new BaseCanvas(m_session, *m_comparison, *m_view, m_theme, canvases);
  canvases->insertWidget(0, base);
  m_comparisonCommands->addChoice(base->toggle());
  connect(m_workspaces, &Workspaces::shown, base,
          [base](const QString& id) { base->toggle().setChecked(id == QStringLiteral("compare")); });
}

void MainWindow::createToolBars() {
  m_fileBar = addToolBar(tr("File"));
  m_fileBar->setObjectName(QStringLiteral("fileBar"));
  m_fileBar->setIconSize({18, 18});
  m_runBar = new RunBar(m_session, m_theme, this);
  m_hullBar = new HullBar(*m_scene, *m_view, this);
  addToolBar(m_runBar);
  addToolBar(m_hullBar);
  m_devices = new DeviceMemory(m_session, *m_runBar, m_persistence, this);
  for (QToolBar* bar : findChildren<QToolBar*>())
    connect(bar, &QToolBar::orientationChanged, this, &MainWindow::refreshOverflowIcons);
}

void MainWindow::createMenus() {
  auto* builder = new MenuBuilder(m_theme, this);
  const auto say = [this](const QString& sentence) { m_status->say(sentence); };
  m_selectionCommands =
      std::make_unique<SelectionCommands>(*builder, *m_view, m_panes->get<OutlinePanel>(), m_panes->get<PlanPanel>());
  m_start = new StartCommands(m_session, m_theme, *m_files, *m_tourBar, m_persistence, *this);
  auto* drawings = new DrawingCommands(m_session, *m_scene, *this);
  connect(drawings, &DrawingCommands::message, this, &MainWindow::showMessage);
  connect(drawings, &DrawingCommands::hint, this, say);
  new FileMenu({*builder, *m_files, *drawings, *m_comparisonCommands}, *menuBar()->addMenu(tr("&File")), *m_fileBar);
  new EditMenu(
      {*builder, *m_selectionCommands, m_session, *m_view, *m_panes, *m_blockCommands, *m_comparisonCommands, m_theme},
      *menuBar()->addMenu(tr("&Edit")), *m_fileBar);
  const auto* view = new ViewMenu({*builder, *m_view, *m_overview, *m_panes, *m_workspaces, m_theme, m_persistence},
                                  *menuBar()->addMenu(tr("&View")), m_hullBar->commands());
  connect(view, &ViewMenu::hint, this, say);
  const auto* run = new RunMenu({*builder, *m_selectionCommands, m_session, *m_runBar, *m_panes},
                                *menuBar()->addMenu(tr("&Run")), *this);
  connect(run, &RunMenu::message, this, &MainWindow::showMessage);
  createEscape();
  m_help = new HelpMenu(*builder, *m_start, *m_devices, m_scene->scope(), m_persistence, *menuBar(), *this);
}

void MainWindow::createEscape() {
  auto* action = new QAction(this);
  action->setShortcut(QKeySequence(Qt::Key_Escape));
  connect(action, &QAction::triggered, this, &MainWindow::escape);
  addAction(action);
}

void MainWindow::createStatusLine() {
  m_status = new StatusLine(*statusBar(), *m_view, *m_panes, *m_runBar->progress());
  // The log keeps messages of the status line, which disappear after some seconds.
  MessageLog& log = m_panes->get<LogPanel>().log();
  connect(statusBar(), &QStatusBar::messageChanged, &log, [&log](const QString& sentence) {
    if (!sentence.isEmpty()) log.add(Severity::Note, sentence);
  });
}

void MainWindow::insertBar(QWidget& bar) {
  static_cast<QVBoxLayout*>(centralWidget()->layout())->insertWidget(0, &bar);
}

void MainWindow::createFileBar() {
  auto* bar = new FileBar(m_session, m_files->watch(), m_theme, centralWidget());
  insertBar(*bar);
  connect(bar, &FileBar::reloadWanted, m_files, &FileCommands::reload);
  connect(bar, &FileBar::compareWanted, m_files, &FileCommands::compareWithFileWanted);
  connect(m_files, &FileCommands::compareWithFileWanted, this, [this] { compareWith(m_session.pipeline().path()); });
}

void MainWindow::connectFiles() {
  // Keys go where people look: to the canvas, unless a pane was asked for since.
  connect(&m_start->page(), &StartPage::closed, m_view, [this] { m_view->setFocus(Qt::OtherFocusReason); });
  connect(&m_session.pipeline(), &OpenPipeline::replaced, m_view, [this] { m_view->setFocus(Qt::OtherFocusReason); });
  m_view->setFocus(Qt::OtherFocusReason);
  connect(m_tourBar, &TourBar::paneWanted, this, &MainWindow::showPane);
  connect(m_tourBar, &TourBar::interrupted, m_status, &StatusLine::say);
  auto* drop = new FileDrop(*this);
  connect(drop, &FileDrop::openWanted, m_files, &FileCommands::openAll);
  connect(drop, &FileDrop::compareWanted, this, &MainWindow::compareWith);
  connect(m_files, &FileCommands::message, this, &MainWindow::showMessage);
  auto* weights = new ModelWeights(m_session, *m_message, *this);
  connect(m_files, &FileCommands::imported, weights, &ModelWeights::offer);
  connect(weights, &ModelWeights::message, this, &MainWindow::showMessage);
  connect(m_files, &FileCommands::hint, m_status, &StatusLine::say);
  connect(m_files, &FileCommands::runOpened, this, &MainWindow::showTimings);
}

void MainWindow::connectSession() {
  connect(&m_session.pipeline(), &OpenPipeline::changed, this, &MainWindow::refreshTitle);
  connect(&m_session.pipeline(), &OpenPipeline::replaced, this, &MainWindow::showReplaced);
  connect(&m_session.plan(), &LivePlan::analysisChanged, this, [this] {
    // A file that cannot run shows why at once; later problems only count, so that no tab jumps while one types.
    if (std::exchange(m_isFreshlyOpened, false) && hasErrors(m_session.plan().analysis()->lowered.diagnostics))
      m_panes->dock(QStringLiteral("problems")).raise();
  });
  connect(&m_session.pipeline(), &OpenPipeline::editRefused, m_status, &StatusLine::say);
  connect(&m_session.runner(), &Runner::started, m_message, &QWidget::hide);
  connect(&m_session.runner(), &Runner::failed, this, &MainWindow::showError);
  connect(&m_session.runner(), &Runner::finished, this, &MainWindow::showTimings);
  connect(&m_session.runner(), &Runner::measured, m_workspaces, &Workspaces::offerProfile);
  connect(&m_session.runner(), &Runner::numericsFinished, &m_panes->dock(QStringLiteral("numerics")),
          &QDockWidget::raise);
  connect(&m_session, &Session::problemsWanted, this, [this] {
    showPane(QStringLiteral("problems"));
    m_panes->get<ProblemsPanel>().selectFirst();
  });
  connect(m_devices, &DeviceMemory::message, m_status, &StatusLine::say);
  connect(m_runBar, &RunBar::refused, this, &MainWindow::showError);
  connect(&m_theme, &Theme::changed, this, &MainWindow::refreshOverflowIcons);
}

/// Connects requests of one pane to another, or to the canvas.
void MainWindow::connectPanes() {
  auto& palette = m_panes->get<PalettePanel>();
  const auto showDocument = [&palette, &history = m_session.pipeline().history()] {
    palette.showDocument(history.document(), history.canRedo());
  };
  auto* const pause = new QTimer(&palette);
  pause->setSingleShot(true);
  pause->setInterval(kPalettePauseMs);
  connect(pause, &QTimer::timeout, &palette, showDocument);
  connect(&m_session.pipeline(), &OpenPipeline::changed, &palette, [this, pause, showDocument] {
    const auto& edits = LastEdits::of(m_session.pipeline());
    if (edits && !extentOf(*edits).changesMore) return;
    isLarge(m_session) ? pause->start() : showDocument();
  });
  showDocument();
  connect(&palette, &PalettePanel::activated, m_scene,
          [this](const QString& entry) { m_scene->commands().insertAfterSelection(entry.toStdString()); });
  connect(&m_panes->dock(QStringLiteral("suggestions")), &QDockWidget::visibilityChanged,
          &m_panes->get<SuggestionsPanel>(), &SuggestionsPanel::setSeen);
  connect(&m_panes->get<NumericsPanel>(), &NumericsPanel::tensorWanted, this, &MainWindow::lookAt);
  connect(m_view, &GraphView::tensorWanted, this, &MainWindow::lookAt);
  auto& outline = m_panes->get<OutlinePanel>();
  auto& problems = m_panes->get<ProblemsPanel>();
  auto& inspector = m_panes->get<InspectorPanel>();
  connect(&problems, &ProblemsPanel::explanationWanted, m_help,
          [this](const QString& code) { m_help->showGuide(QStringLiteral("problems"), code); });
  connect(&inspector, &InspectorPanel::helpWanted, m_help, &HelpMenu::showOpHelp);
  connect(&outline, &OutlinePanel::hint, m_status, &StatusLine::say);
  connect(&outline, &OutlinePanel::propertiesRequested, &inspector, &InspectorPanel::focusFirstField);
  m_blockCommands->follow(outline);
  m_blockCommands->follow(m_panes->get<PlanPanel>());
  m_blockCommands->follow(problems);
  m_blockCommands->lead(inspector);
}

void MainWindow::connectRuns() {
  auto& runs = m_panes->get<RunsPanel>();
  auto& sweep = m_panes->get<SweepPanel>();
  RunHistory& history = runs.history();
  if (m_persistence == Persistence::Settings) {
    history.setKeepsRuns(QSettings().value(kKeepRunsKey, false).toBool());
    connect(&history, &RunHistory::keepsRunsChanged, this,
            [&history] { QSettings().setValue(kKeepRunsKey, history.keepsRuns()); });
  }
  connect(&history, &RunHistory::failed, this, &MainWindow::showError);
  connect(&runs, &RunsPanel::openWanted, m_files, &FileCommands::openListedRun);
  connect(&runs, &RunsPanel::compareWanted, this, [this](const QString& file) {
    if (compareWith(file)) m_workspaces->show(QStringLiteral("compare"));
  });
  connect(&sweep, &SweepPanel::openWanted, m_files, &FileCommands::openListedRun);
  const auto show = [this](const QString& sentence) { showMessage(sentence); };
  connect(&sweep, &SweepPanel::message, this, show);
  connect(&m_panes->get<FlamePanel>(), &FlamePanel::message, this, show);
  connect(&m_panes->get<TensorPanel>(), &TensorPanel::message, this, show);
}

void MainWindow::connectComparison() {
  const QString changes = QStringLiteral("changes");
  connect(m_comparisonCommands, &ComparisonCommands::started, this, [this, changes] { showPane(changes); });
  connect(m_comparisonCommands, &ComparisonCommands::refused, this, &MainWindow::showError);
  connect(m_comparison, &PipelineComparison::changed, this,
          [this, changes] { m_panes->setCount(changes, static_cast<int>(m_comparison->changes().size())); });
}

void MainWindow::restoreLayout() {
  if (m_persistence == Persistence::None) return;
  const QSettings settings;
  if (!restoreGeometry(settings.value(kGeometryKey).toByteArray()))
    resize(firstWindowSize(screen()->availableGeometry().size()));
  m_panes->restoreDefaultLayout();  // that of this height
  m_workspaces->restoreLast();
  setFileFolders(*this, settings.value(kFoldersKey).toMap());
}

// ------------------------------------------------------------------------------------------------------------ showing

/// Qt draws the button of a toolbar that is cut off in black, whatever the palette.
void MainWindow::refreshOverflowIcons() {
  for (auto* more : findChildren<QToolButton*>(QStringLiteral("qt_toolbar_ext_button")))
    more->setIcon(m_theme.icon(QStringLiteral("more")));
}

void MainWindow::refreshTitle() {
  setWindowTitle(tr("%1[*]").arg(m_session.pipeline().displayName()));
  setWindowFilePath(m_session.pipeline().path());
  setWindowModified(m_session.pipeline().isModified());
}

void MainWindow::showMessage(const QString& sentence, Severity severity) {
  m_panes->get<LogPanel>().log().add(severity, sentence);
  m_message->setText(sentence);
  m_message->show();
}

void MainWindow::showReplaced() {
  m_message->hide();
  m_start->page().hide();
  m_isFreshlyOpened = true;
  if (m_session.pipeline().document().isReadOnly())
    showMessage(
        tr("This file was written by a newer major version of Fuseline. It is open read-only, and unknown parts are "
           "not shown."));
  m_view->fit();
}

/// If the timeline or the roofline is in front, the run is shown there.
void MainWindow::showTimings() {
  QApplication::alert(this);  // nothing happens where the window has the focus
  if (!m_panes->isInSight(m_panes->get<TimelinePanel>()) && !m_panes->isInSight(m_panes->get<RooflinePanel>()))
    m_panes->dock(QStringLiteral("timings")).raise();
}

void MainWindow::lookAt(const QString& tensor) {
  showPane(QStringLiteral("tensor"));
  m_panes->get<TensorPanel>().lookAt(tensor);
}

bool MainWindow::showPane(const QString& name) {
  if (name != m_start->page().objectName()) return m_panes->show(name);
  m_start->show();
  return true;
}

QStringList MainWindow::paneNames() const { return QStringList{m_start->page().objectName()} + m_panes->ids(); }

void MainWindow::escape() {
  if (m_start->page().isVisible()) return m_start->page().hide();
  if (m_scene->wires().isDrawing()) return m_view->wireKeys().cancel();
  if (m_view->hand().cancelCut() || m_scene->copies().cancel()) return;
  if (auto* const field = qobject_cast<QLineEdit*>(QApplication::focusWidget()))
    return field->isClearButtonEnabled() ? field->clear() : void();  // a filter; Esc while typing does not stop a run
  if (qobject_cast<QAbstractSpinBox*>(QApplication::focusWidget())) return;
  if (m_session.runner().isRunning()) return m_session.runner().cancel();
  m_scene->scope().select({});
  m_scene->clearSelection();
  m_view->setFocus(Qt::OtherFocusReason);
}

// -------------------------------------------------------------------------------------------------------------- files

bool MainWindow::compareWith(const QString& path) {
  const Result<void> started = m_comparison->startWithFile(path);
  started ? void(showPane(QStringLiteral("changes"))) : showError(toQt(started.error().message));
  return static_cast<bool>(started);
}

void MainWindow::offerRecovery(Autosave& autosave) {
  m_files->setAutosave(autosave);
  m_panes->get<LogPanel>().offerFolder(tr("Open the recovery folder"), autosave.folder());
  auto* bar = new RecoveryBar(autosave, m_theme, centralWidget());
  insertBar(*bar);
  connect(bar, &RecoveryBar::recoveryWanted, this, [this, &autosave] {
    if (!m_files->mayDiscard()) return;
    const bool isOutdated = autosave.isFirstOutdated();
    autosave.recoverFirst();
    if (isOutdated) m_files->watch().distrust();
  });
  connect(&autosave, &Autosave::failed, this, &MainWindow::showError);
}

/// Qt shortens the names of tabs to nothing before it lets them be scrolled.
void MainWindow::childEvent(QChildEvent* event) {
  QMainWindow::childEvent(event);
  auto* tabs = event->polished() ? qobject_cast<QTabBar*>(event->child()) : nullptr;
  if (!tabs) return;
  tabs->setElideMode(Qt::ElideNone);
  tabs->setUsesScrollButtons(true);
  m_tabIcons->follow(*tabs);
}

void MainWindow::closeEvent(QCloseEvent* event) {
  if (!m_files->mayClose()) {
    event->ignore();
    return;
  }
  if (m_persistence == Persistence::Settings) {
    QSettings settings;
    settings.setValue(kGeometryKey, saveGeometry());
    m_workspaces->keep();
    settings.setValue(kFoldersKey, fileFolders(*this));
    m_start->remember(m_session.pipeline().path());
    m_viewMemory->remember();
  }
  event->accept();
}

}  // namespace fuseline::ui
