// Compares hashes whenever the system tells of the file or of its folder, where a replacement of the file is seen.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/file_watch.h"

#include "core/document/file_format.h"
#include "core/edit/canonical_order.h"

#include <QCryptographicHash>
#include <QFile>
#include <QFileInfo>
#include <QGuiApplication>

#include <chrono>
#include <utility>

namespace fuseline::ui {

namespace {

// A program that writes in place is told of several times.
constexpr std::chrono::milliseconds kSettling(150);

QByteArray hashOf(const QByteArray& bytes) { return QCryptographicHash::hash(bytes, QCryptographicHash::Sha256); }

/// Nothing where there is no file; of one that cannot be read, empty bytes that no hash equals.
std::optional<QByteArray> hashOfFile(const QString& path) {
  QFile file(path);
  if (!file.exists()) return std::nullopt;
  return file.open(QFile::ReadOnly) ? hashOf(file.readAll()) : QByteArray();
}

QByteArray hashOfSaved(const History& history) {
  return hashOf(QByteArray::fromStdString(serialize(documentToSave(history))));
}

/// Whether a file that has just been opened still holds what was read of it.
bool holds(const QString& path, const PipelineDocument& document) {
  const Result<LoadedDocument> loaded = loadDocument(path.toStdString());
  return loaded && loaded->document == document;
}

}  // namespace

FileWatch::FileWatch(Session& session, QObject* parent) : QObject(parent), m_session(session) {
  m_settled.setSingleShot(true);
  m_settled.setInterval(kSettling);
  connect(&m_settled, &QTimer::timeout, this, &FileWatch::check);
  const auto settle = qOverload<>(&QTimer::start);
  connect(&m_watcher, &QFileSystemWatcher::fileChanged, &m_settled, settle);
  connect(&m_watcher, &QFileSystemWatcher::directoryChanged, &m_settled, settle);
  // Other machines change files of a network file system without a word.
  connect(qGuiApp, &QGuiApplication::applicationStateChanged, &m_settled, settle);
  connect(&session.pipeline(), &OpenPipeline::replaced, this, &FileWatch::start);
  connect(&session.pipeline(), &OpenPipeline::changed, this, &FileWatch::noteChange);
  start();
}

void FileWatch::start() {
  m_path = m_session.pipeline().path();
  m_known = m_path.isEmpty() ? std::nullopt : hashOfFile(m_path);
  // Recovered content differs from the file.
  const bool isRead = !m_path.isEmpty() && !m_session.pipeline().isModified();
  if (isRead && !holds(m_path, m_session.pipeline().document())) m_known = QByteArray();
  watch();
  check();
}

/// A save leaves nothing modified, and so does undoing down to what was saved, which leaves the file alone.
void FileWatch::noteChange() {
  if (m_session.pipeline().isModified() || m_session.pipeline().path().isEmpty()) return;
  const QByteArray saved = hashOfSaved(m_session.pipeline().history());
  const bool isElsewhere = m_session.pipeline().path() != m_path;
  if (!isElsewhere && hashOfFile(m_path) != saved) return;
  m_path = m_session.pipeline().path();
  m_known = saved;
  if (isElsewhere) watch();
  take(saved);
}

void FileWatch::watch() {
  const QStringList watched = m_watcher.files() + m_watcher.directories();
  if (!watched.isEmpty()) m_watcher.removePaths(watched);
  if (m_path.isEmpty()) return;
  m_watcher.addPath(QFileInfo(m_path).path());
  if (QFileInfo::exists(m_path)) m_watcher.addPath(m_path);
}

FileState FileWatch::check() {
  if (m_path.isEmpty()) {
    take(m_known);
    return m_state;
  }
  // The watch of a file ends when another one takes its place.
  if (QFileInfo::exists(m_path) && !m_watcher.files().contains(m_path)) m_watcher.addPath(m_path);
  take(hashOfFile(m_path));
  return m_state;
}

void FileWatch::take(const Content& content) {
  const FileState state = content == m_known ? FileState::AsKnown : content ? FileState::Changed : FileState::Deleted;
  const bool isSame = state == m_state && (state == FileState::AsKnown || content == m_found);
  m_found = content;
  m_state = state;
  if (!isSame) Q_EMIT changed();
}

void FileWatch::distrust() {
  m_known = QByteArray();
  check();
}

void FileWatch::keepMine() {
  m_known = m_path.isEmpty() ? std::nullopt : hashOfFile(m_path);
  take(m_known);
  m_session.pipeline().markUnsaved();
}

}  // namespace fuseline::ui
