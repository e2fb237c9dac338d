// Keeps the files of baselines by pipeline.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/baseline_memory.h"

#include "core/profile/run_folder.h"
#include "ui/session/baselines.h"
#include "ui/session/file_settings.h"

#include <QScopedValueRollback>

#include <utility>

namespace fuseline::ui {

namespace {

FileSettings settings() { return {QStringLiteral("baselines/files"), QStringLiteral("runs")}; }

/// By letter, then the reference again: pinning them in this order restores the reference.
QStringList filesOf(const Baselines& baselines) {
  QStringList files;
  for (const Baseline& baseline : baselines.all())
    if (!baseline.file.isEmpty()) files.append(baseline.file);
  if (baselines.reference() && !baselines.reference()->file.isEmpty()) files.append(baselines.reference()->file);
  return files;
}

}  // namespace

BaselineMemory::BaselineMemory(Session& session, QObject* parent) : QObject(parent), m_session(session) {
  connect(&session.baselines(), &Baselines::changed, this, &BaselineMemory::remember);
  connect(&session.pipeline(), &OpenPipeline::replaced, this, &BaselineMemory::restore);
  // It may have been saved under another name. Queued: of another document this signal comes first.
  connect(&session.pipeline(), &OpenPipeline::changed, this, &BaselineMemory::followFile, Qt::QueuedConnection);
  restore();
}

void BaselineMemory::remember() {
  if (m_path.isEmpty() || m_isRestoring) return;
  const QStringList files = filesOf(m_session.baselines());
  settings().set(m_path, files.isEmpty() ? QVariant() : QVariant(files));
}

void BaselineMemory::followFile() {
  if (std::exchange(m_path, m_session.pipeline().path()) != m_session.pipeline().path()) remember();
}

/// Does nothing when the same file is read again. A baseline that cannot be read is dropped without a message, because
/// nobody asked for it just now.
void BaselineMemory::restore() {
  if (std::exchange(m_path, m_session.pipeline().path()) == m_session.pipeline().path() || m_path.isEmpty()) return;
  const QStringList files = settings().of(m_path).toStringList();
  if (files.isEmpty()) return;
  const QScopedValueRollback guard(m_isRestoring, true);
  Baselines& baselines = m_session.baselines();
  baselines.unpinAll();
  for (const QString& file : files) {
    if (const Baseline* pinned = baselines.inFile(file))
      baselines.setReference(pinned->slot);
    else if (Result<RunRecord> run = loadNotedRun(file.toStdString()))
      (void)baselines.pin(std::move(*run), file);
  }
}

}  // namespace fuseline::ui
