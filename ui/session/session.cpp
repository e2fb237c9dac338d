// Opens documents in all parts of the session.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/session.h"

#include "core/edit/renaming.h"
#include "ui/session/baselines.h"
#include "ui/theme/format.h"

#include <QFileInfo>

#include <utility>

namespace fuseline::ui {

Session::Session(SessionSettings settings, QObject* parent)
    : QObject(parent),
      m_layOut(std::move(settings.layOut)),
      m_selection(m_pipeline),
      m_results(m_pipeline, m_setup),
      m_baselines(new Baselines(this)),
      m_plan(m_pipeline, m_setup, m_results, std::move(settings.capabilitiesOf)),
      m_runner(m_pipeline, m_setup, m_results, *m_baselines, settings.workerCommand) {}

bool Session::rename(const QString& id, const QString& newId) {
  const bool isRenamed = m_pipeline.apply(renameNode(m_pipeline.document(), id.toStdString(), newId.toStdString()));
  if (isRenamed) m_selection.select({newId});
  return isRenamed;
}

void Session::openText(const std::string& text, const QString& name) {
  LoadedDocument loaded = parseDocument(text);
  replace({.document = std::move(loaded.document), .problems = std::move(loaded.diagnostics), .name = name});
}

Result<void> Session::open(const QString& path) {
  Result<ReadFile> file = readPipelineFile(path);
  if (!file) return file.error();
  show(std::move(*file));
  return {};
}

void Session::show(ReadFile file) {
  const QFileInfo info(file.path);
  if (file.run) return showRun(info.absoluteFilePath(), std::move(*file.run));
  const bool isTakenOut = file.loaded.isTakenOut;
  replace({.document = std::move(file.loaded.document),
           .problems = std::move(file.loaded.diagnostics),
           .notes = std::move(file.loaded.notes),
           .path = isTakenOut ? QString() : info.absoluteFilePath(),
           .name = isTakenOut ? info.completeBaseName() : QString()});
}

void Session::recover(const std::string& text, const QString& path, const QString& name, bool isPartlyRead) {
  LoadedDocument loaded = parseDocument(text);
  replace({.document = std::move(loaded.document),
           .problems = std::move(loaded.diagnostics),
           .path = path,
           .name = name,
           .isUnsaved = true,
           .isPartlyRead = isPartlyRead});
}

Result<void> Session::openRun(const QString& path) {
  Result<ReadFile> file = readRunFile(path);
  if (!file) return file.error();
  show(std::move(*file));
  return {};
}

void Session::showRun(const QString& path, ReadFile::Run opened) {
  auto& [record, measured] = opened;
  const QString name = toQt(record.title());
  LastRun run{.document = measured.document, .pass = measured.pass, .device = record.settings.device};
  run.record = std::move(record);
  run.origin = RunOrigin{.file = path, .changes = toQt(measured.changes)};
  replace({.document = std::move(measured.document), .name = name}, std::move(run));
}

namespace {

RunSpec withRanksOf(const RunSpec& opened, RunSpec options) {
  options.ranks = opened.ranks;
  options.overlaps = opened.overlaps;
  options.chunks = opened.chunks;
  return options;
}

}  // namespace

/// The pass, the ranks and the device that fusions are planned for follow an opened run.
void Session::replace(ReadPipeline read, std::optional<LastRun> run) {
  m_results.leave();
  m_pipeline.take(std::move(read));
  m_runner.abandon();
  m_plan.forget();
  m_selection.forget();
  m_results.startWith(std::move(run));
  m_setup.setTensorsFile({});
  if (const LastRun* const opened = m_results.openedRun()) {
    m_plan.takeGains(*opened);
    m_setup.setPass(opened->pass);
    m_setup.setOptions(withRanksOf(opened->record.settings, m_setup.spec()));
    m_setup.takeOptimizer(opened->record.settings);
  }
  Q_EMIT m_pipeline.changed();
  Q_EMIT m_pipeline.replaced();
  Q_EMIT m_selection.changed();
}

}  // namespace fuseline::ui
