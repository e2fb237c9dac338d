// RunHistory: the runs of the open pipeline, as files: beside a saved one if the user wants that, else until the end.
//
// All files are read and written in one thread beside the window's. What is listed is what is on the disk.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_folder.h"
#include "ui/session/session.h"

#include <QHash>
#include <QObject>
#include <QString>
#include <QStringList>
#include <QTemporaryDir>
#include <QThreadPool>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace fuseline::ui {

/// How a run of the list stands to what is shown in the window.
struct RunStanding {
  bool isOfThisState = true;  // made with the pipeline as it is now; true while that is not known yet
  QString baseline;           // its letter; empty: it is not pinned
};

class RunHistory : public QObject {
  Q_OBJECT

 public:
  /// Unmarked runs beyond this number make room for new ones.
  static constexpr std::size_t kMaxRuns = 50;

  explicit RunHistory(Session& session, QObject* parent = nullptr);
  ~RunHistory() override;

  /// The newest first.
  const std::vector<RunEntry>& entries() const { return m_entries; }
  RunStanding standingOf(const RunEntry& entry) const;

  bool keepsRuns() const { return m_keepsRuns; }
  /// From now on runs are written beside the pipeline's file, and those of this session go there, too.
  void setKeepsRuns(bool keepsRuns);
  /// "llama.runs" beside "llama.fuseline"; empty for a pipeline that was never saved.
  QString folder() const;

  void setNote(const RunEntry& entry, const RunNote& note);
  void remove(const RunEntry& entry);
  /// A copy of the file.
  void exportTo(const RunEntry& entry, const QString& path);
  /// Becomes one that others are set beside.
  void pin(const RunEntry& entry);
  /// Waits for everything that was asked for. For tests.
  void waitForDone();

 Q_SIGNALS:
  void changed();
  void keepsRunsChanged();
  void failed(const QString& sentence);

 private:
  void pinRead(const std::filesystem::path& file, Result<RunRecord> record);
  void noteRows();
  void noteStretches();
  void followMove(const QString& from, const QString& to);
  bool isShown(const RunRecord& record) const;
  void takeFile(quint64 number, const QString& file);
  /// From the thread, to be done in the window's.
  template <class Act>
  void tell(Act act);
  using Job = std::function<Result<void>()>;
  void take(const RunRecord& record);
  void followReplacement();
  void followPath();
  void moveToDocument();
  void followFile();
  /// Does it in the thread, and lists the files again.
  void start(Job job);
  void list();
  void hashDocument();

  Session& m_session;
  QTemporaryDir m_temporary;
  int m_numDocuments = 0;
  QString m_temporaryFolder;              // of the open pipeline
  QHash<QString, QString> m_temporaryOf;  // by the pipeline's file
  QString m_path;                         // of the pipeline's file
  QStringList m_folders;                  // all with runs of this pipeline
  std::vector<RunEntry> m_entries;
  std::string m_hash;      // of the pipeline as it is now; empty: not known yet
  quint64 m_numShown = 0;  // counts what the window shows, so that a file is told of the right one
  bool m_keepsRuns = false;
  bool m_isRunOwn = false;  // the run in progress is of this document
  quint64 m_hashGeneration = 0;
  quint64 m_listGeneration = 0;
  std::shared_ptr<RunFolderReader> m_reader = std::make_shared<RunFolderReader>();  // the thread's
  QThreadPool m_pool;
};

}  // namespace fuseline::ui
