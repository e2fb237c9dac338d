// Commands on runs: how steps are timed, tensors, files of runs, baselines.
// SPDX-License-Identifier: Apache-2.0
#include "ui/window/run_commands.h"

#include "core/export/model/weight_map.h"
#include "core/profile/run_command.h"
#include "core/profile/run_folder.h"
#include "ui/runs/run_options_dialog.h"
#include "ui/session/baselines.h"
#include "ui/session/exports.h"
#include "ui/theme/format.h"
#include "ui/widgets/expression_edit.h"
#include "ui/widgets/file_choice.h"
#include "ui/widgets/long_job.h"

#include <QActionGroup>
#include <QClipboard>
#include <QFileInfo>
#include <QGuiApplication>

#include <utility>

namespace fuseline::ui {

RunCommands::RunCommands(Session& session, QWidget& window) : QObject(&window), m_session(session), m_window(window) {}

void RunCommands::write(const QString& path, FileWork work, const QString& success) {
  const QString title = tr("Writing %1…").arg(QFileInfo(path).fileName());
  const std::optional<Result<void>> written = resultUnlessCanceled(m_window, title, std::move(work));
  written ? tell(*written, success) : say(tr("Canceled, but %1 may still be written. Check this file.").arg(path));
}

QAction* RunCommands::add(QMenu& menu, const QString& text, const QKeySequence& shortcut, std::function<void()> run) {
  QAction* action = menu.addAction(text);
  if (!shortcut.isEmpty()) action->setShortcut(shortcut);
  connect(action, &QAction::triggered, this, std::move(run));
  return action;
}

void RunCommands::say(const QString& sentence, Severity severity) { Q_EMIT message(sentence, severity); }

void RunCommands::tell(const Result<void>& outcome, const QString& success) {
  outcome ? say(success) : say(toQt(outcome.error().message), Severity::Error);
}

void RunCommands::addTimingMenu(QMenu& runMenu) {
  QMenu* menu = runMenu.addMenu(tr("Timing &method"));
  menu->setToolTipsVisible(true);
  auto* group = new QActionGroup(this);
  const auto add = [&](const QString& text, const QString& tip, StepTiming timing) {
    QAction* action = group->addAction(menu->addAction(text));
    action->setToolTip(tip);
    action->setCheckable(true);
    action->setChecked(m_session.setup().runTarget().timing == timing);
    connect(action, &QAction::triggered, this, [this, timing] {
      RunTarget target = m_session.setup().runTarget();
      target.timing = timing;
      m_session.setup().setRunTarget(target);
    });
    return action;
  };
  add(tr("&Device clock"), tr("CUDA events on a GPU, the host clock on the CPU"), StepTiming::Auto);
  QAction* kernels =
      add(tr("&Kernel trace (CUPTI)"), tr("On a GPU: times each kernel without changing how kernels are launched"),
          StepTiming::Cupti);
  add(tr("&Host clock"), tr("Synchronizes with the device after every step"), StepTiming::Host);
  const auto refresh = [this, kernels] { kernels->setEnabled(m_session.setup().runTarget().isGpu()); };
  refresh();
  connect(&m_session.setup(), &RunSetup::runTargetChanged, kernels, refresh);
}

void RunCommands::addCommands(QMenu& menu) {
  add(menu, tr("&Options..."), {}, [this] { chooseOptions(); });
  add(menu, tr("&Load tensors..."), {}, [this] { chooseTensors(); });
  QAction* draw = add(menu, tr("Use &random tensors"), {}, [this] { m_session.setup().setTensorsFile({}); });
  add(menu, tr("Save &parameters..."), {}, [this] { saveParameters(ParameterNames::Pipeline); });
  addSavingOfModel(menu);
  QAction* save = add(menu, tr("Save r&un..."), {}, [this] { saveRun(); });
  enableWithRun(*save);
  addExportCommands(menu);
  addCopyCommands(menu);
  addBaselineCommands(menu);
  const auto refresh = [this, draw] {
    const QString& path = m_session.setup().tensorsFile();
    draw->setEnabled(!path.isEmpty());
    say(path.isEmpty() ? tr("Runs use random tensors from the seed.")
                       : tr("Runs use the tensors in %1, and random values for all others.").arg(path));
  };
  draw->setEnabled(false);
  connect(&m_session.setup(), &RunSetup::tensorsFileChanged, this, refresh);
}

/// Also while no menu is open: a shortcut may be a user's own.
void RunCommands::enableWithRun(QAction& action) {
  const auto refresh = [this, &action] { action.setEnabled(m_session.results().lastRun().has_value()); };
  refresh();
  connect(&m_session.runner(), &Runner::finished, &action, refresh);
  connect(&m_session.pipeline(), &OpenPipeline::replaced, &action, refresh);
}

void RunCommands::addCopyCommands(QMenu& menu) {
  QMenu* commands = menu.addMenu(tr("&Copy as command"));
  commands->setToolTipsVisible(true);
  add(*commands, tr("For the &shell"), {}, [this] {
    copyCommand(runCommand);
  })->setToolTip(tr("Copy the command line that does the same as Run"));
  add(*commands, tr("For &Nsight Systems"), {}, [this] {
    copyCommand(nsysCommand);
  })->setToolTip(tr("Copy a command line that runs this pipeline under nsys, with an NVTX range for each step"));
}

/// Copies a command for the pipeline's file, which does not have unsaved changes.
void RunCommands::copyCommand(const CommandOf& commandOf) {
  if (m_session.pipeline().path().isEmpty())
    return say(tr("The pipeline has not been saved yet. Save it first; the command needs a file."));
  commitTypedField();
  const std::string command = commandOf(m_session.setup().spec(), m_session.pipeline().path().toStdString(),
                                        m_session.setup().tensorsFile().toStdString());
  QGuiApplication::clipboard()->setText(toQt(command));
  const QString unsaved = m_session.pipeline().isModified() ? tr(" Unsaved changes are not in that file.") : QString();
  say(tr("Copied: %1").arg(toQt(command)) + unsaved);
}

void RunCommands::addExportCommands(QMenu& menu) {
  QMenu* formats = menu.addMenu(tr("E&xport run"));
  formats->setToolTipsVisible(true);
  for (const Exporter& exporter : exporters()) {
    QAction* action = formats->addAction(tr("As %1...").arg(toQt(exporter.title)));
    action->setToolTip(toQt(exporter.summary));
    connect(action, &QAction::triggered, this, [this, &exporter] { exportRun(exporter); });
  }
  enableWithRun(*formats->menuAction());
}

void RunCommands::addBaselineCommands(QMenu& menu) {
  menu.addSeparator();
  add(menu, tr("Pin run as &baseline"), QKeySequence(Qt::CTRL | Qt::Key_B), [this] { pinBaseline(); });
  add(menu, tr("&Compare with runs..."), {}, [this] { chooseBaselines(); });
  QAction* unpin = add(menu, tr("Unpin all baselines"), {}, [this] { m_session.baselines().unpinAll(); });
  const auto refresh = [this, unpin] { unpin->setEnabled(!m_session.baselines().isEmpty()); };
  refresh();
  connect(&m_session.baselines(), &Baselines::changed, this, refresh);
}

void RunCommands::pinBaseline() {
  if (!m_session.results().lastRun()) return say(tr("No measurements yet. Run the pipeline first."));
  Baselines& baselines = m_session.baselines();
  const Result<void> pinned = baselines.pin(m_session.results().lastRun()->record, m_session.results().runFile());
  tell(pinned,
       pinned
           ? tr("Pinned as baseline %1. Timings compares the next runs with it.").arg(baselines.reference()->letter())
           : QString());
}

void RunCommands::chooseBaselines() {
  const QStringList paths = filesToOpen({.purpose = QStringLiteral("run"),
                                         .title = tr("Compare with"),
                                         .patterns = tr("Measured runs (*.fuserun *.html);;All files (*)"),
                                         .pipeline = m_session.pipeline().path()},
                                        &m_window);
  for (const QString& path : paths) {
    Result<RunRecord> run = loadNotedRun(path.toStdString());
    const Result<void> pinned = run ? m_session.baselines().pin(std::move(*run), path) : Result<void>(run.error());
    if (!pinned) return say(toQt(pinned.error().message), Severity::Error);
  }
}

void RunCommands::chooseOptions() {
  RunOptionsDialog dialog(m_session.setup().spec(), &m_window);
  if (dialog.exec() == QDialog::Accepted) m_session.setup().setOptions(dialog.options());
}

void RunCommands::chooseTensors() {
  const QString path = fileToOpen({.purpose = QStringLiteral("tensors"),
                                   .title = tr("Load tensors"),
                                   .patterns = tr("Tensors (*.safetensors *.safetensors.index.json);;All files (*)"),
                                   .pipeline = m_session.pipeline().path()},
                                  &m_window);
  if (!path.isEmpty()) m_session.setup().setTensorsFile(path);
}

void RunCommands::addSavingOfModel(QMenu& menu) {
  QAction* action =
      add(menu, tr("Save parameters under original &names..."), {}, [this] { saveParameters(ParameterNames::Model); });
  action->setToolTip(
      tr("Write the parameters with the original model's names and shards, for Hugging Face transformers"));
  const auto refresh = [this, action] { action->setEnabled(!weightTable(m_session.pipeline().document()).empty()); };
  refresh();
  connect(&m_session.pipeline(), &OpenPipeline::replaced, action, refresh);
}

void RunCommands::saveParameters(ParameterNames names) {
  const bool isOfModel = names == ParameterNames::Model;
  const QString path =
      fileToSave({.purpose = QStringLiteral("tensors"),
                  .title = isOfModel ? tr("Save parameters under original names") : tr("Save parameters"),
                  .patterns = tr("Tensors (*.safetensors);;All files (*)"),
                  .pipeline = m_session.pipeline().path(),
                  .ending = QStringLiteral("safetensors"),
                  .name = isOfModel ? QStringLiteral("model") : QString()},
                 &m_window);
  if (path.isEmpty()) return;
  write(path, parametersWork(m_session, path, names), tr("Parameters saved to %1.").arg(path));
}

void RunCommands::saveRun() {
  const QString path = fileToSave({.purpose = QStringLiteral("run"),
                                   .title = tr("Save run"),
                                   .patterns = tr("Measured runs (*.fuserun);;All files (*)"),
                                   .pipeline = m_session.pipeline().path(),
                                   .ending = QStringLiteral("fuserun"),
                                   .name = QFileInfo(m_session.pipeline().displayName()).completeBaseName()},
                                  &m_window);
  if (path.isEmpty()) return;
  write(path, runWork(m_session, path),
        tr("Run saved to %1. Open it here, or pass it to fuseline run --measured.").arg(path));
}

void RunCommands::exportRun(const Exporter& exporter) {
  const QString path =
      fileToSave({.purpose = QStringLiteral("export"),
                  .title = tr("Export run"),
                  .patterns = tr("%1 (*%2);;All files (*)").arg(toQt(exporter.title), toQt(exporter.ending)),
                  .pipeline = m_session.pipeline().path(),
                  .ending = toQt(exporter.ending.substr(1)),
                  .name = QFileInfo(m_session.pipeline().displayName()).completeBaseName()},
                 &m_window);
  if (path.isEmpty()) return;
  write(path, exportedRunWork(m_session, exporter, path),
        tr("Run exported to %1. %2.").arg(path, toQt(exporter.summary)));
}

}  // namespace fuseline::ui
