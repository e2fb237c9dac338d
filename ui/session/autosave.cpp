// Journals of unsaved pipelines.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/autosave.h"

#include "core/document/file_format.h"
#include "core/support/atomic_file.h"
#include "core/support/read_file.h"
#include "ui/theme/format.h"

#include <QCoreApplication>
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QUuid>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

namespace fuseline::ui {

namespace {

constexpr auto kJournalFormat = "fuseline-autosave";

QString lockOf(const QString& journal) { return journal.chopped(8) + QStringLiteral(".lock"); }  // ".journal"

/// A lock is stale when its process is gone, however old it is.
std::unique_ptr<QLockFile> makeLock(const QString& path) {
  auto lock = std::make_unique<QLockFile>(path);
  lock->setStaleLockTime(0);
  return lock;
}

std::string textOf(const Json& journal, const char* key) {
  const auto found = journal.find(key);
  return found != journal.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// Nothing where the file is no journal.
std::optional<Leftover> readJournal(const QString& path) {
  const Result<std::string> text = readWholeFile(path.toStdString(), {.what = "journal", .maxMiB = 256});
  if (!text) return std::nullopt;
  const Json journal = Json::parse(*text, nullptr, false);
  const bool isJournal = journal.is_object() && journal.value("format", Json()) == Json(kJournalFormat) &&
                         journal.value("pipeline", Json()).is_string();
  if (!isJournal) return std::nullopt;
  return Leftover{.journal = path,
                  .file = toQt(textOf(journal, "file")),
                  .name = toQt(textOf(journal, "name")),
                  .savedAt = QDateTime::fromString(toQt(textOf(journal, "savedAt")), Qt::ISODate),
                  .text = textOf(journal, "pipeline"),
                  .lock = {},
                  .isSetAside = journal.value("isSetAside", Json()) == Json(true),
                  .isPartlyRead = journal.value("isPartlyRead", Json()) == Json(true)};
}

QString newStem(const QString& folder) { return folder + u'/' + QUuid::createUuid().toString(QUuid::WithoutBraces); }

}  // namespace

Autosave::Autosave(Session& session, QString folder, AutosaveTiming timing, QObject* parent)
    : QObject(parent), m_session(session), m_folder(std::move(folder)), m_stem(newStem(m_folder)) {
  m_afterEdit.setSingleShot(true);
  m_afterEdit.setInterval(timing.afterEdit);
  m_whileEditing.setSingleShot(true);
  m_whileEditing.setInterval(timing.whileEditing);
  connect(&m_afterEdit, &QTimer::timeout, this, &Autosave::write);
  connect(&m_whileEditing, &QTimer::timeout, this, &Autosave::write);
  connect(&session.pipeline(), &OpenPipeline::changed, this, &Autosave::noteChange);
  connect(&session.pipeline(), &OpenPipeline::replaced, this, &Autosave::write);
  findLeftovers();
}

Autosave::~Autosave() {
  if (!m_isLeftBehind) remove();
}

void Autosave::leaveBehind() {
  write();
  m_isLeftBehind = m_session.pipeline().isModified();
}

/// Times are kept to the second.
bool Autosave::isFirstOutdated() const {
  const QFileInfo file(m_leftovers.front().file);
  return file.exists() && file.lastModified() >= m_leftovers.front().savedAt.addSecs(1);
}

void Autosave::findLeftovers() {
  const QStringList names = QDir(m_folder).entryList({QStringLiteral("*.journal")}, QDir::Files);
  for (const QString& name : names) {
    const QString path = QDir(m_folder).filePath(name);
    std::unique_ptr<QLockFile> lock = makeLock(lockOf(path));
    if (!lock->tryLock(0)) continue;  // its process lives
    std::optional<Leftover> leftover = readJournal(path);
    if (!leftover) continue;
    leftover->lock = std::move(lock);
    m_leftovers.push_back(std::move(*leftover));
  }
  std::ranges::sort(m_leftovers, std::greater(), &Leftover::savedAt);
}

void Autosave::recoverFirst() {
  const Leftover leftover = m_leftovers.front();
  m_session.recover(leftover.text, leftover.file, leftover.name, leftover.isPartlyRead);  // which writes a journal
  // Where the new journal could not be written, the old one is still all there is.
  if (QFile::exists(journal())) QFile::remove(leftover.journal);
  m_leftovers.erase(m_leftovers.begin());
  Q_EMIT leftoversChanged();
}

void Autosave::discardFirst() {
  QFile::remove(m_leftovers.front().journal);
  m_leftovers.erase(m_leftovers.begin());
  Q_EMIT leftoversChanged();
}

void Autosave::noteChange() {
  m_isLeftBehind = false;                                  // a logout that was called off
  if (!m_session.pipeline().isModified()) return write();  // saved, or back at what is saved
  m_afterEdit.start();
  if (!m_whileEditing.isActive()) m_whileEditing.start();
}

bool Autosave::lock() {
  if (m_lock) return true;
  if (!QDir().mkpath(m_folder)) return false;
  m_lock = makeLock(m_stem + QStringLiteral(".lock"));
  if (!m_lock->tryLock(0)) m_lock.reset();
  return m_lock != nullptr;
}

void Autosave::write() {
  m_afterEdit.stop();
  m_whileEditing.stop();
  if (!m_session.pipeline().isModified()) return remove();
  const Result<void> written = writeJournal(Reason::Unsaved);
  if (written || std::exchange(m_hasFailed, true)) return;
  Q_EMIT failed(tr("Unsaved changes cannot be kept for recovery: %1").arg(toQt(written.error().message)));
}

Result<void> Autosave::setAside() {
  const Result<void> written = writeJournal(Reason::SetAside);
  if (!written) return written;
  std::optional<Leftover> leftover = readJournal(journal());
  if (!leftover) return Error{journal().toStdString() + " cannot be read."};
  leftover->lock = std::move(m_lock);
  m_leftovers.insert(m_leftovers.begin(), std::move(*leftover));
  m_stem = newStem(m_folder);
  Q_EMIT leftoversChanged();
  return {};
}

Result<void> Autosave::writeJournal(Reason reason) {
  if (!lock()) return Error{m_folder.toStdString() + " cannot be written."};
  const Json content = {{"format", kJournalFormat},
                        {"file", m_session.pipeline().path().toStdString()},
                        {"name", m_session.pipeline().displayName().toStdString()},
                        {"savedAt", QDateTime::currentDateTimeUtc().toString(Qt::ISODate).toStdString()},
                        {"isSetAside", reason == Reason::SetAside},
                        {"isPartlyRead", m_session.pipeline().isPartlyRead()},
                        {"pipeline", serialize(m_session.pipeline().document())}};
  return writeFileAtomically(journal().toStdString(), [&](std::ostream& file) { file << content.dump() << '\n'; });
}

void Autosave::remove() {
  m_afterEdit.stop();
  m_whileEditing.stop();
  QFile::remove(journal());
  m_lock.reset();  // removes its file, too
}

}  // namespace fuseline::ui
