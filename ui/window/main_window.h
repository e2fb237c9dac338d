// MainWindow: canvas in the middle, panes around it, and what joins them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/canvas/graph_view.h"
#include "ui/session/pipeline_comparison.h"
#include "ui/session/session.h"
#include "ui/theme/theme.h"
#include "ui/widgets/message_bar.h"
#include "ui/window/file_commands.h"
#include "ui/window/panes.h"
#include "ui/window/persistence.h"
#include "ui/window/start_commands.h"
#include "ui/window/workspaces.h"

#include <QMainWindow>
#include <QToolBar>

#include <memory>

namespace fuseline::ui {

class Autosave;
class BlockCommands;
class ComparisonCommands;
class DeviceMemory;
class HelpMenu;
class HullBar;
class OverviewMap;
class RunBar;
class SelectionCommands;
class StatusLine;
class TabIcons;
class TourBar;
class ViewMemory;

class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  MainWindow(Session& session, Theme& theme, Persistence persistence, QWidget* parent = nullptr);
  ~MainWindow() override;

  /// False when the file could not be read; the sentence is shown in the window.
  bool openFile(const QString& path) { return m_files->open(path); }
  /// Compares with the pipeline of a file. False: it could not be read, and the sentence is shown in the window.
  bool compareWith(const QString& path);
  /// Shows a bar while there is something to recover.
  void offerRecovery(Autosave& autosave);
  /// A sentence across the top of the canvas, until it is closed or replaced; the log keeps it.
  void showMessage(const QString& sentence, Severity severity = Severity::Note);
  QString message() const { return m_message->text(); }

  FileCommands& files() { return *m_files; }
  GraphView& canvas() { return *m_view; }
  GraphScene& scene() { return *m_scene; }
  Panes& panes() { return *m_panes; }
  PipelineComparison& comparison() { return *m_comparison; }
  StartCommands& start() { return *m_start; }
  void showTimings();
  /// In the pane Tensor.
  void lookAt(const QString& tensor);
  /// Brings a pane to the front: "plan", "timeline"; or the start page, "start". False: there is none of this name.
  bool showPane(const QString& name);
  QStringList paneNames() const;

 protected:
  void childEvent(QChildEvent* event) override;
  void closeEvent(QCloseEvent* event) override;

 private:
  // Construction, in this order.
  void createCentre();
  void createPanes();
  void createToolBars();
  void createMenus();
  void createEscape();
  void createStatusLine();
  void createFileBar();
  void connectFiles();
  void connectSession();
  void connectPanes();
  void connectRuns();
  void connectComparison();
  void restoreLayout();

  void insertBar(QWidget& bar);
  void showError(const QString& sentence) { showMessage(sentence, Severity::Error); }
  void refreshOverflowIcons();
  void refreshTitle();
  void showReplaced();
  void escape();

  Session& m_session;
  Theme& m_theme;
  Persistence m_persistence;
  GraphScene* m_scene = nullptr;
  GraphView* m_view = nullptr;
  OverviewMap* m_overview = nullptr;
  FileCommands* m_files = nullptr;
  MessageBar* m_message = nullptr;
  TourBar* m_tourBar = nullptr;
  PipelineComparison* m_comparison = nullptr;
  TabIcons* m_tabIcons = nullptr;
  Panes* m_panes = nullptr;
  Workspaces* m_workspaces = nullptr;
  BlockCommands* m_blockCommands = nullptr;
  ComparisonCommands* m_comparisonCommands = nullptr;
  std::unique_ptr<SelectionCommands> m_selectionCommands;
  QToolBar* m_fileBar = nullptr;
  RunBar* m_runBar = nullptr;
  HullBar* m_hullBar = nullptr;
  DeviceMemory* m_devices = nullptr;
  StartCommands* m_start = nullptr;
  HelpMenu* m_help = nullptr;
  StatusLine* m_status = nullptr;
  ViewMemory* m_viewMemory = nullptr;  // with Persistence::Settings
  bool m_isFreshlyOpened = false;
};

}  // namespace fuseline::ui
