// Keeps runs as files.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/run_history.h"

#include "core/document/file_format.h"
#include "core/document/pipeline_hash.h"
#include "core/profile/run_file.h"
#include "core/support/atomic_file.h"
#include "core/support/read_file.h"
#include "ui/session/baselines.h"
#include "ui/theme/format.h"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>

#include <algorithm>
#include <set>
#include <utility>

namespace fuseline::ui {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxRunMiB = 256;

fs::path toPath(const QString& path) { return path.toStdString(); }

bool hasSamples(const RunRecord& record) {
  return std::ranges::any_of(record.variants, [](const VariantRecord& each) { return !each.endToEndNs.empty(); });
}

std::vector<fs::path> toPaths(const QStringList& folders) {
  std::vector<fs::path> paths;
  for (const QString& folder : folders) paths.push_back(toPath(folder));
  return paths;
}

Result<void> removeFile(const fs::path& file) {
  std::error_code error;
  fs::remove(file, error);
  if (error) return Error{file.string() + " cannot be deleted: " + error.message() + "."};
  return forgetRunNote(file.parent_path(), file.filename().string());
}

/// Unmarked runs that are too many, but for those that are in use.
void makeRoom(RunFolderReader& reader, const fs::path& folder, const std::set<fs::path>& inUse) {
  std::error_code ignored;
  for (const fs::path& file : runsToDrop(reader.read({&folder, 1}), RunHistory::kMaxRuns))
    if (!inUse.contains(file)) fs::remove(file, ignored);
}

struct Added {
  Result<fs::path> file;  // where it is now
  Result<void> outcome;   // of the folder that was meant
};

/// A folder that cannot be written is no reason to lose a run.
Added addOrElse(const fs::path& folder, const fs::path& otherwise, const RunRecord& record) {
  Result<fs::path> added = addRun(folder, record);
  if (added || folder == otherwise) return {added, added ? Result<void>() : added.error()};
  return {addRun(otherwise, record), added.error()};
}

Result<void> copyRun(const fs::path& from, const fs::path& to) {
  const Result<std::string> text = readWholeFile(from, {.what = "run file", .maxMiB = kMaxRunMiB});
  if (!text) return text.error();
  return writeFileAtomically(to, [&](std::ostream& file) { file << *text; });
}

}  // namespace

RunHistory::RunHistory(Session& session, QObject* parent) : QObject(parent), m_session(session) {
  m_pool.setMaxThreadCount(1);
  connect(&session.runner(), &Runner::started, this, [this] { m_isRunOwn = true; });
  connect(&session.runner().worker(), &WorkerClient::finished, this, &RunHistory::take);
  connect(&session.pipeline(), &OpenPipeline::replaced, this, &RunHistory::followReplacement);
  // Later: a document that is replaced changes first, and is no document that was saved under another name.
  connect(&session.pipeline(), &OpenPipeline::changed, this, &RunHistory::followPath, Qt::QueuedConnection);
  connect(&session.plan(), &LivePlan::analysisChanged, this, &RunHistory::hashDocument);
  connect(&session.baselines(), &Baselines::changed, this, &RunHistory::changed);
  connect(&session.results(), &LastResults::rowNotesChanged, this, &RunHistory::noteRows);
  connect(&session.results(), &LastResults::stretchNotesChanged, this, &RunHistory::noteStretches);
  followReplacement();
}

/// The last run may still be being written to disk.
RunHistory::~RunHistory() { m_pool.waitForDone(); }

QString RunHistory::folder() const { return m_path.isEmpty() ? QString() : toQt(runFolderOf(toPath(m_path)).string()); }

RunStanding RunHistory::standingOf(const RunEntry& entry) const {
  const Baseline* baseline = m_session.baselines().inFile(toQt(entry.file.string()));
  return {.isOfThisState = m_hash.empty() || !entry.summary || entry.summary->pipelineHash == m_hash,
          .baseline = baseline ? baseline->letter() : QString()};
}

/// A run that was opened out of this list leaves the list as it is.
void RunHistory::followReplacement() {
  m_isRunOwn = false;
  const LastRun* const opened = m_session.results().openedRun();
  ++m_numShown;
  const bool isOutOfList = opened && m_folders.contains(QFileInfo(opened->origin->file).absolutePath());
  m_path = m_session.pipeline().path();
  m_hash.clear();
  ++m_hashGeneration;
  if (isOutOfList) return Q_EMIT changed();
  m_temporaryFolder = m_temporaryOf.value(m_path);
  if (m_temporaryFolder.isEmpty()) m_temporaryFolder = m_temporary.filePath(QString::number(++m_numDocuments));
  m_folders = {m_temporaryFolder};
  followFile();
  list();
}

/// Reopening a file shows its runs again.
void RunHistory::followFile() {
  if (m_path.isEmpty()) return;
  m_temporaryOf[m_path] = m_temporaryFolder;
  if (!m_folders.contains(folder())) m_folders.append(folder());
}

/// Saved under a name, or another one.
void RunHistory::followPath() {
  if (m_session.pipeline().path() == m_path) return;
  m_path = m_session.pipeline().path();
  followFile();
  m_keepsRuns ? moveToDocument() : list();
}

void RunHistory::setKeepsRuns(bool keepsRuns) {
  if (keepsRuns == m_keepsRuns) return;
  m_keepsRuns = keepsRuns;
  Q_EMIT keepsRunsChanged();
  if (m_keepsRuns) moveToDocument();
}

void RunHistory::moveToDocument() {
  if (m_path.isEmpty()) return;
  start([this, from = toPath(m_temporaryFolder), to = toPath(folder())] {
    return moveRuns(from, to, [this](const fs::path& old, const fs::path& now) {
      tell([this, old = toQt(old.string()), now = toQt(now.string())] { followMove(old, now); });
    });
  });
}

void RunHistory::followMove(const QString& from, const QString& to) {
  if (m_session.results().runFile() == from) m_session.results().setRunFile(to);
  m_session.baselines().followFile(from, to);
  Q_EMIT changed();
}

/// One that was stopped before anything was measured is none.
void RunHistory::take(const RunRecord& record) {
  if (!m_isRunOwn || m_session.runner().isSweeping() || !hasSamples(record)) return;
  const fs::path temporary = toPath(m_temporaryFolder);
  const fs::path target = m_keepsRuns && !m_path.isEmpty() ? toPath(folder()) : temporary;
  const quint64 number = isShown(record) ? ++m_numShown : 0;
  std::set<fs::path> inUse = {toPath(m_session.results().runFile())};
  for (const Baseline& each : m_session.baselines().all()) inUse.insert(toPath(each.file));
  start([this, target, temporary, number, inUse = std::move(inUse), record = std::make_shared<const RunRecord>(record),
         reader = m_reader] {
    const Added added = addOrElse(target, temporary, *record);
    makeRoom(*reader, target, inUse);
    if (added.file) tell([this, number, file = toQt(added.file->string())] { takeFile(number, file); });
    return added.outcome;
  });
}

/// One that was stopped does not take the place of a complete one.
bool RunHistory::isShown(const RunRecord& record) const {
  const std::optional<LastRun>& shown = m_session.results().lastRun();
  return shown && !shown->origin && shown->record.isPartial == record.isPartial;
}

/// Notes taken before the file existed are written to it too.
void RunHistory::takeFile(quint64 number, const QString& file) {
  if (number != m_numShown) return;
  m_session.results().setRunFile(file);
  if (!m_session.results().lastRun()->record.rowNotes.empty()) noteRows();
  if (!m_session.results().lastRun()->record.stretchNotes.empty()) noteStretches();
}

void RunHistory::setNote(const RunEntry& entry, const RunNote& note) {
  if (note == entry.note) return;
  const RunNote own{.text = note.text, .isStarred = note.isStarred};
  start([file = entry.file, own] { return saveRunNote(file.parent_path(), file.filename().string(), own); });
  const QString file = toQt(entry.file.string());
  m_session.baselines().rename(file, note.text);
  if (file == m_session.results().runFile()) m_session.results().setRunNote(note.text);
}

void RunHistory::noteRows() {
  const QString& file = m_session.results().runFile();
  if (file.isEmpty()) return;
  start([file = toPath(file), rows = m_session.results().lastRun()->record.rowNotes] {
    return saveRowNotes(file, rows);
  });
}

/// Stored with the notes on steps, so that programs without time range notes keep both.
void RunHistory::noteStretches() {
  const QString& file = m_session.results().runFile();
  if (file.isEmpty()) return;
  const RunRecord& record = m_session.results().lastRun()->record;
  start([file = toPath(file), rows = record.rowNotes, stretches = record.stretchNotes]() -> Result<void> {
    if (Result<void> saved = saveRowNotes(file, rows); !saved) return saved;
    return saveStretchNotes(file, stretches);
  });
}

void RunHistory::remove(const RunEntry& entry) {
  start([file = entry.file] { return removeFile(file); });
}

void RunHistory::exportTo(const RunEntry& entry, const QString& path) {
  start([from = entry.file, to = toPath(path)] { return copyRun(from, to); });
}

void RunHistory::pin(const RunEntry& entry) {
  m_pool.start([this, file = entry.file] {
    tell([this, file, record = loadNotedRun(file)]() mutable { pinRead(file, std::move(record)); });
  });
}

void RunHistory::pinRead(const fs::path& file, Result<RunRecord> record) {
  const Result<void> pinned =
      record ? m_session.baselines().pin(std::move(*record), toQt(file.string())) : Result<void>(record.error());
  if (!pinned) Q_EMIT failed(toQt(pinned.error().message));
}

void RunHistory::start(Job job) {
  m_pool.start([this, job = std::move(job)] {
    const Result<void> done = job();
    if (!done) tell([this, sentence = toQt(done.error().message)] { Q_EMIT failed(sentence); });
  });
  list();
}

template <class Act>
void RunHistory::tell(Act act) {
  QMetaObject::invokeMethod(this, std::move(act), Qt::QueuedConnection);
}

void RunHistory::list() {
  const quint64 generation = ++m_listGeneration;
  m_pool.start([this, generation, folders = toPaths(m_folders), reader = m_reader] {
    QMetaObject::invokeMethod(
        this,
        [this, generation, entries = reader->read(folders)]() mutable {
          if (generation != m_listGeneration) return;
          m_entries = std::move(entries);
          if (m_hash.empty()) hashDocument();
          Q_EMIT changed();
        },
        Qt::QueuedConnection);
  });
}

/// The text of a large pipeline takes its time: not where there is no run to compare it with.
void RunHistory::hashDocument() {
  const quint64 generation = ++m_hashGeneration;
  if (m_entries.empty()) return m_hash.clear();
  m_pool.start([this, generation, document = m_session.pipeline().document()] {
    const std::string hash = hashWithoutView(toJson(document));
    QMetaObject::invokeMethod(
        this,
        [this, generation, hash] {
          if (generation != m_hashGeneration || hash == m_hash) return;
          m_hash = hash;
          Q_EMIT changed();
        },
        Qt::QueuedConnection);
  });
}

void RunHistory::waitForDone() {
  constexpr int kMostSteps = 3;  // a job, the list after it, and the hash that this list is compared with
  for (int step = 0; step < kMostSteps; ++step) {
    QCoreApplication::sendPostedEvents(this, QEvent::MetaCall);
    m_pool.waitForDone();
  }
  QCoreApplication::sendPostedEvents(this, QEvent::MetaCall);
}

}  // namespace fuseline::ui
