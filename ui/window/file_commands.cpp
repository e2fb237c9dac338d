// Dialogs around the session's files.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/file_commands.h"

#include "core/edit/node_edits.h"
#include "core/runtime/pipeline_run.h"
#include "ui/runs/measured_examples.h"
#include "ui/session/autosave.h"
#include "ui/session/exports.h"
#include "ui/session/run_files.h"
#include "ui/theme/format.h"
#include "ui/widgets/expression_edit.h"
#include "ui/widgets/file_choice.h"
#include "ui/widgets/long_job.h"
#include "ui/window/export_dialog.h"

#include <QFileInfo>
#include <QMessageBox>
#include <QPushButton>

#include <memory>
#include <optional>
#include <utility>

namespace fuseline::ui {

namespace {

QString filePatterns() { return FileCommands::tr("Fuseline pipelines (*.fuseline);;All files (*)"); }

QString openPatterns() {
  return FileCommands::tr(
             "Pipelines, measured runs, drawings, reports, modules and models (*.fuseline *.fuserun *.svg *.png *.html "
             "*.py *.onnx *.json)") +
         QStringLiteral(";;") + filePatterns();
}

/// Such as a file with the marks of a merge in it.
bool isUnreadable(const LoadedDocument& loaded) {
  return loaded.document == PipelineDocument() && hasErrors(loaded.diagnostics);
}

}  // namespace

FileCommands::FileCommands(Session& session, bool keepsRecent, QWidget& window)
    : QObject(&window),
      m_session(session),
      m_window(window),
      m_recentFiles(keepsRecent),
      m_backups(keepsRecent),
      m_watch(session) {}

bool FileCommands::succeeded(const Result<void>& outcome) {
  if (!outcome) say(toQt(outcome.error().message), Severity::Error);
  return static_cast<bool>(outcome);
}

// ------------------------------------------------------------------------------------------------------------ opening

void FileCommands::newDocument() {
  if (!mayDiscard()) return;
  m_session.show({.path = {}, .loaded = {.document = newPipeline(), .isTakenOut = true}});
  m_session.selection().select({toQt(m_session.pipeline().document().inputs().front().id)});  // ops go on from there
}

bool FileCommands::newFromTemplate(const std::string& text, const QString& name) {
  if (!mayDiscard()) return false;
  m_session.openText(text, name);
  return true;
}

void FileCommands::chooseAndOpen() {
  openAll(filesToOpen({.purpose = QStringLiteral("pipeline"),
                       .title = tr("Open pipelines or measured runs"),
                       .patterns = openPatterns(),
                       .pipeline = m_session.pipeline().path()},
                      &m_window));
}

void FileCommands::chooseAndImport() {
  openAll(filesToOpen({.purpose = QStringLiteral("model"),
                       .title = tr("Import models"),
                       .patterns = tr("ONNX models and model configs (*.onnx *.json);;All files (*)"),
                       .pipeline = m_session.pipeline().path()},
                      &m_window));
}

void FileCommands::openAll(const QStringList& paths) {
  if (paths.isEmpty()) return;
  if (mayDiscard()) open(paths.front());
  openWindows(paths.mid(1));
}

void FileCommands::openWindows(const QStringList& paths) {
  for (const QString& path : paths) openWindow(path);
}

void FileCommands::openWindow(const QString& path) {
  if (m_openWindow && m_openWindow(path)) return;
  say(path.isEmpty() ? tr("A new window could not be opened.")
                     : tr("A new window could not be opened for %1.").arg(path),
      Severity::Error);
}

void FileCommands::openListedRun(const QString& path) {
  if (mayDiscard() && show(path, readRunFile)) Q_EMIT runOpened();
}

/// False: it could not be read, or the user did not want to wait.
bool FileCommands::show(const QString& path, Result<ReadFile> (*read)(const QString& path)) {
  const QString title = tr("Reading %1…").arg(QFileInfo(path).fileName());
  std::optional<Result<ReadFile>> file = resultUnlessCanceled(m_window, title, [read, path] { return read(path); });
  if (!file || !succeeded(*file ? Result<void>() : Result<void>(file->error()))) return false;
  m_session.show(std::move(**file));
  return true;
}

bool FileCommands::open(const QString& path) {
  const bool isRun = isRunFile(path);
  if (!show(path, isRun ? readRunFile : readPipelineFile)) return false;
  if (isRun) Q_EMIT runOpened();
  if (!isRun && m_session.pipeline().path().isEmpty()) {
    say((QStringList{tr("Imported from %1. Save asks for a name.").arg(path)} + m_session.pipeline().notes())
            .join(u' '));
    Q_EMIT imported(path);
  }
  m_recentFiles.add(path);
  return true;
}

Result<void> FileCommands::setAside() {
  if (m_autosave) return m_autosave->setAside();
  return Error{tr("Your unsaved changes cannot be backed up. Save them under another name first.").toStdString()};
}

void FileCommands::reload() {
  commitTypedField();
  const QString path = m_session.pipeline().path();
  const Result<LoadedDocument> loaded = loadDocument(path.toStdString());
  if (!loaded) return say(toQt(loaded.error().message), Severity::Error);
  if (isUnreadable(*loaded)) return say(toQt(errorText(loaded->diagnostics, path.toStdString())), Severity::Error);
  if (!mayStopRun() || (m_session.pipeline().isModified() && !succeeded(setAside()))) return;
  show(path, readPipelineFile);
}

void FileCommands::fillRecentMenu(QMenu& menu) {
  menu.clear();
  menu.setToolTipsVisible(true);
  const QStringList recent = m_recentFiles.paths();
  for (const QString& path : recent) {
    QAction* action = menu.addAction(QFileInfo(path).fileName());
    action->setToolTip(path);
    action->setEnabled(QFileInfo::exists(path));
    connect(action, &QAction::triggered, this, [this, path] {
      if (mayDiscard()) open(path);
    });
  }
  menu.addSeparator();
  QAction* clear = menu.addAction(tr("Clear"));
  clear->setEnabled(!recent.isEmpty());
  connect(clear, &QAction::triggered, this, [this] { m_recentFiles.clear(); });
}

namespace {

QAction* addExample(QMenu& menu, const MeasuredExample& example) {
  QString text = example.text;
  QAction* action = menu.addAction(text.replace(u'&', QStringLiteral("&&")));
  action->setEnabled(example.problem.isEmpty());
  action->setToolTip(example.problem.isEmpty() ? example.path : example.problem);
  return action;
}

}  // namespace

void FileCommands::fillExamplesMenu(QMenu& menu) {
  menu.clear();
  for (const MeasuredExample& example : measuredExamples(m_exampleFolders))
    connect(addExample(menu, example), &QAction::triggered, this, [this, path = example.path] {
      if (mayDiscard()) open(path);
    });
  if (!menu.isEmpty()) return;
  QAction* none =
      menu.addAction(tr("No measured examples installed. Record some on a GPU: fuseline-bench gpu --records FOLDER"));
  none->setToolTip(tr("Searched for run files (*.fuserun) in: %1").arg(m_exampleFolders.join(tr(" and "))));
  none->setEnabled(false);
}

// ------------------------------------------------------------------------------------------------------------- saving

bool FileCommands::save() {
  commitTypedField();
  if (m_session.pipeline().path().isEmpty()) return saveAs();
  if (m_session.pipeline().isPartlyRead()) return askToLose();
  return overwrite();
}

/// Asks before overwriting changes of another program.
bool FileCommands::overwrite() {
  return m_watch.check() == FileState::Changed ? askToOverwrite() : saveTo(m_session.pipeline().path());
}

bool FileCommands::askToLose() {
  QMessageBox box(QMessageBox::Warning, tr("File only partly read"),
                  tr("Parts of %1 could not be read (see Problems) and will be lost. Overwrite the file?")
                      .arg(m_session.pipeline().displayName()),
                  QMessageBox::Cancel, &m_window);
  const QPushButton* loseIt = box.addButton(tr("Overwrite"), QMessageBox::DestructiveRole);
  const QPushButton* elsewhere = box.addButton(tr("Save as..."), QMessageBox::AcceptRole);
  box.setDefaultButton(QMessageBox::Cancel);
  box.exec();
  if (box.clickedButton() == loseIt) return overwrite();
  return box.clickedButton() == elsewhere && saveAs();
}

bool FileCommands::askToOverwrite() {
  QMessageBox box(QMessageBox::Warning, tr("Changed by another program"),
                  tr("Another program changed %1 since you opened or saved it. Overwrite its changes?")
                      .arg(m_session.pipeline().displayName()),
                  QMessageBox::Cancel, &m_window);
  const QPushButton* overwrite = box.addButton(tr("Overwrite"), QMessageBox::DestructiveRole);
  const QPushButton* elsewhere = box.addButton(tr("Save as..."), QMessageBox::AcceptRole);
  const QPushButton* compare = box.addButton(tr("Compare"), QMessageBox::ActionRole);
  box.setDefaultButton(QMessageBox::Cancel);
  box.exec();
  if (box.clickedButton() == overwrite) return saveTo(m_session.pipeline().path());
  if (box.clickedButton() == elsewhere) return saveAs();
  if (box.clickedButton() == compare) Q_EMIT compareWithFileWanted();
  return false;
}

bool FileCommands::saveAs() {
  commitTypedField();
  const QString path = fileToSave({.purpose = QStringLiteral("pipeline"),
                                   .title = tr("Save pipeline"),
                                   .patterns = filePatterns(),
                                   .pipeline = m_session.pipeline().path(),
                                   .ending = QStringLiteral("fuseline"),
                                   .name = m_session.pipeline().path().isEmpty() ? m_session.pipeline().displayName()
                                                                                 : m_session.pipeline().path()},
                                  &m_window);
  return !path.isEmpty() && saveTo(path);
}

bool FileCommands::saveTo(const QString& path) {
  if (!m_backups.keep(path)) say(tr("No backup: %1~ could not be written.").arg(path));
  if (!succeeded(m_session.pipeline().save(path))) return false;
  m_recentFiles.add(m_session.pipeline().path());
  return true;
}

bool FileCommands::isUnsaved() { return m_session.pipeline().isModified() || m_watch.check() == FileState::Deleted; }

/// The points of a sweep are in no file yet, and neither is what a run has measured so far.
bool FileCommands::mayStopRun() {
  if (!m_session.runner().isRunning()) return true;
  const bool isSweep = m_session.runner().isSweeping();
  return QMessageBox::question(&m_window, isSweep ? tr("Sweep in progress") : tr("Run in progress"),
                               isSweep ? tr("Stop the sweep and discard its measurements?")
                                       : tr("Stop the run and discard its measurements?"),
                               QMessageBox::Discard | QMessageBox::Cancel, QMessageBox::Cancel) == QMessageBox::Discard;
}

bool FileCommands::mayDiscard() {
  commitTypedField();
  if (!isUnsaved()) return mayStopRun();
  const QString run = m_session.runner().isRunning() ? tr("\nThe run in progress will be stopped.") : QString();
  const QString question = m_watch.state() == FileState::Deleted
                               ? tr("Another program deleted or moved %1. Save your version?")
                               : tr("Save changes to %1?");
  const auto answer =
      QMessageBox::question(&m_window, tr("Unsaved changes"), question.arg(m_session.pipeline().displayName()) + run,
                            QMessageBox::Save | QMessageBox::Discard | QMessageBox::Cancel, QMessageBox::Save);
  if (answer == QMessageBox::Save) return save();
  return answer == QMessageBox::Discard;
}

bool FileCommands::mayClose() {
  commitTypedField();
  if (isUnsaved() || !m_session.runner().isRunning()) return mayDiscard();
  return QMessageBox::question(&m_window, tr("Run in progress"), tr("Stop the run and close the window?"),
                               QMessageBox::Close | QMessageBox::Cancel, QMessageBox::Cancel) == QMessageBox::Close;
}

// ---------------------------------------------------------------------------------------------------------- exporting

void FileCommands::exportPipeline() {
  commitTypedField();
  ExportDialog([this](const PipelineExporter& exporter) { return exportedPipelineWork(m_session, exporter); },
               m_session.pipeline().path().isEmpty() ? m_session.pipeline().displayName() : m_session.pipeline().path(),
               &m_window)
      .exec();
}

}  // namespace fuseline::ui
