// FileWatch: notices when another program changes, replaces or deletes the file of the open document.
//
// Only the contents of the file count: touching it, and saving by the session itself, report nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/session.h"

#include <QByteArray>
#include <QFileSystemWatcher>
#include <QObject>
#include <QString>
#include <QTimer>

#include <optional>

namespace fuseline::ui {

enum class FileState { AsKnown, Changed, Deleted };

class FileWatch : public QObject {
  Q_OBJECT

 public:
  explicit FileWatch(Session& session, QObject* parent = nullptr);

  /// As it was found last. A document in no file is as known.
  FileState state() const { return m_state; }
  /// Checks now, without waiting for a notification of the system.
  FileState check();
  /// Marks the file as changed by another program: its contents are not the saved state of the document.
  void distrust();
  /// Accepts the current contents of the file; the document becomes an unsaved change of it.
  void keepMine();

 Q_SIGNALS:
  /// The state changed, or an already changed file changed again.
  void changed();

 private:
  using Content = std::optional<QByteArray>;  // a hash; nothing: there is no file
  void start();
  void noteChange();
  void watch();
  void take(const Content& content);

  Session& m_session;
  QString m_path;   // of the file that m_known is about
  Content m_known;  // as it was read or written here, or accepted
  Content m_found;
  FileState m_state = FileState::AsKnown;
  QFileSystemWatcher m_watcher;
  QTimer m_settled;
};

}  // namespace fuseline::ui
