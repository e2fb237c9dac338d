// Opens documents in all parts of the session.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/session.h"

#include "core/edit/renaming.h"
#include "core/export/any_document.h"
#include "core/profile/run_folder.h"
#include "core/runtime/measured_pipeline.h"
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
  Result<LoadedDocument> loaded = loadOrImportDocument(path.toStdString());
  if (!loaded) return loaded.error();
  if (loaded->isUnreadable) return Error{errorText(loaded->diagnostics, path.toStdString())};
  const QFileInfo file(path);
  const bool isTakenOut = loaded->isTakenOut;
  replace({.document = std::move(loaded->document),
           .problems = std::move(loaded->diagnostics),
           .notes = std::move(loaded->notes),
           .path = isTakenOut ? QString() : file.absoluteFilePath(),
           .name = isTakenOut ? file.completeBaseName() : QString()});
  return {};
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
  Result<RunRecord> record = loadNotedRun(path.toStdString());
  if (!record) return record.error();
  Result<MeasuredPipeline> measured = measuredPipeline(*record);
  if (!measured) return Error{path.toStdString() + ": " + measured.error().message};
  const QString name = toQt(record->title());
  LastRun run{.document = measured->document, .pass = measured->pass, .device = record->settings.device};
  run.record = std::move(*record);
  run.origin = RunOrigin{.file = QFileInfo(path).absoluteFilePath(), .changes = toQt(measured->changes)};
  replace({.document = std::move(measured->document), .name = name}, std::move(run));
  return {};
}

/// The pass and the device that fusions are planned for follow an opened run.
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
  }
  Q_EMIT m_pipeline.changed();
  Q_EMIT m_pipeline.replaced();
  Q_EMIT m_selection.changed();
}

}  // namespace fuseline::ui
