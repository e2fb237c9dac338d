// Autosave: keeps what was not saved yet in a journal, and finds the journals of programs that ended without a word.
//
// A journal is a file of its own beside a lock with the id of the process; the user's file is never written. Both go
// when the pipeline is saved, given up, or the program ends as it should.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ui/session/session.h"

#include <QDateTime>
#include <QLockFile>
#include <QObject>
#include <QString>
#include <QTimer>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace fuseline::ui {

struct AutosaveTiming {
  std::chrono::milliseconds afterEdit{2000};      // without another one
  std::chrono::milliseconds whileEditing{30000};  // at the latest
};

/// Unsaved work of an ended process, or set aside by this one. While this object exists, no other process can recover
/// it.
struct Leftover {
  QString journal;
  QString file;  // that it was opened from; empty: none
  QString name;
  QDateTime savedAt;
  std::string text;  // the pipeline
  std::shared_ptr<QLockFile> lock;
  bool isSetAside = false;
  bool isPartlyRead = false;  // the pipeline is not all that its file says
};

class Autosave : public QObject {
  Q_OBJECT

 public:
  /// Keeps journals in `folder`, which is made when it is needed.
  Autosave(Session& session, QString folder, AutosaveTiming timing = {}, QObject* parent = nullptr);
  ~Autosave() override;

  /// Journals whose process is gone and those that were set aside, the newest first. Those that cannot be read are left
  /// alone.
  const std::vector<Leftover>& leftovers() const { return m_leftovers; }
  /// Opens what was left as an unsaved change of its file; the journal stays until there is a new one.
  /// Precondition: there is a leftover; it is the first one.
  void recoverFirst();
  /// Deletes it. Precondition as above.
  void discardFirst();

  /// Writes the journal if something is unsaved, else removes it.
  void write();
  /// Writes it, and leaves it to the next program, however this one ends.
  void leaveBehind();
  /// Has the file of the first leftover been changed since that was kept? Precondition: there is a leftover.
  bool isFirstOutdated() const;
  /// Keeps unsaved work as the first leftover, before another file is opened in its place.
  /// Errors: the journal cannot be written.
  Result<void> setAside();
  /// Where journals are kept.
  const QString& folder() const { return m_folder; }
  /// Where this process keeps its journal.
  QString journal() const { return m_stem + QStringLiteral(".journal"); }

 Q_SIGNALS:
  void leftoversChanged();
  /// A journal could not be written, with the reason; said once.
  void failed(const QString& sentence);

 private:
  void findLeftovers();
  enum class Reason { Unsaved, SetAside };
  Result<void> writeJournal(Reason reason);
  void noteChange();
  void remove();
  bool lock();

  Session& m_session;
  QString m_folder;
  QString m_stem;  // of the journal that is being kept, and its lock, with the folder
  std::unique_ptr<QLockFile> m_lock;
  std::vector<Leftover> m_leftovers;
  QTimer m_afterEdit;
  QTimer m_whileEditing;
  bool m_isLeftBehind = false;
  bool m_hasFailed = false;
};

}  // namespace fuseline::ui
