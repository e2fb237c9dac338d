// FileCommands: what the menu File does: opens, saves and exports the pipeline, and asks about unsaved changes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/file_watch.h"
#include "ui/session/recent_files.h"
#include "ui/session/session.h"
#include "ui/widgets/backups.h"

#include <QMenu>
#include <QObject>
#include <QStringList>

#include <functional>
#include <string>

namespace fuseline::ui {

class Autosave;

class FileCommands : public QObject {
  Q_OBJECT

 public:
  /// Lives as long as the window does. keepsRecent: whether recent files are kept in the user's settings.
  FileCommands(Session& session, bool keepsRecent, QWidget& window);

  // ---- Each of these asks first, where something unsaved would be lost.
  void newDocument();
  /// False: the user wants to keep what is here.
  bool newFromTemplate(const std::string& text, const QString& name);
  void chooseAndOpen();
  /// Lists ONNX models alone.
  void chooseAndImport();
  /// The first one here, each other in a window of its own.
  void openAll(const QStringList& paths);
  /// A run that another list names: recent files need not, where its folder may go with the program.
  void openListedRun(const QString& path);

  /// A pipeline, a measured run, or what has a pipeline in it. False when it could not be read.
  bool open(const QString& path);
  /// Reads the file again. What is not saved is set aside first; where it cannot be, nothing is read.
  void reload();
  /// False when it was not saved, and the user knows. Asks first where another program changed the file.
  bool save();
  bool saveAs();
  Backups& backups() { return m_backups; }
  void exportPipeline();

  /// False: the user wants to keep what is here.
  bool mayDiscard();
  /// Asks once at most, about the changes and the run together.
  bool mayClose();

  FileWatch& watch() { return m_watch; }
  /// Where reload() sets aside what is not saved.
  void setAutosave(Autosave& autosave) { m_autosave = &autosave; }

  /// Opens a window of its own for a file; an empty path: for none. Without one there are no further windows.
  using WindowOpener = std::function<bool(const QString& path)>;
  void setWindowOpener(WindowOpener opener) { m_openWindow = std::move(opener); }
  void openWindow(const QString& path = {});
  void openWindows(const QStringList& paths);

  QStringList recentFiles() const { return m_recentFiles.paths(); }
  void fillRecentMenu(QMenu& menu);
  /// Where measured examples are looked for.
  void setExampleFolders(const QStringList& folders) { m_exampleFolders = folders; }
  const QStringList& exampleFolders() const { return m_exampleFolders; }
  /// Read again whenever it opens: runs may have been recorded since.
  void fillExamplesMenu(QMenu& menu);

 Q_SIGNALS:
  void message(const QString& sentence, Severity severity);
  /// Message that needs no attention.
  void hint(const QString& sentence);
  void runOpened();
  /// A pipeline was imported from this file, after message() told of it.
  void imported(const QString& path);
  /// The user wants to see what the file holds beside what is here.
  void compareWithFileWanted();

 private:
  void say(const QString& sentence, Severity severity = Severity::Note) { Q_EMIT message(sentence, severity); }
  /// Says why, where it failed.
  bool succeeded(const Result<void>& outcome);
  bool show(const QString& path, Result<ReadFile> (*read)(const QString& path));
  bool saveTo(const QString& path);
  bool askToOverwrite();
  /// Asks before overwriting a file that was only partly read.
  bool overwrite();
  bool askToLose();
  Result<void> setAside();
  /// Whether something is here that the file does not hold.
  bool isUnsaved();
  bool mayStopRun();

  Session& m_session;
  QWidget& m_window;
  RecentFiles m_recentFiles;
  Backups m_backups;
  FileWatch m_watch;
  Autosave* m_autosave = nullptr;
  QStringList m_exampleFolders;
  WindowOpener m_openWindow;
};

}  // namespace fuseline::ui
