// OpenPipeline: the document that is edited, its history, and the file it is in.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/edit/history.h"
#include "core/support/result.h"

#include <QObject>
#include <QString>
#include <QStringList>

#include <cstddef>
#include <string>
#include <vector>

namespace fuseline::ui {

/// A document to open.
struct ReadPipeline {
  PipelineDocument document;
  std::vector<Diagnostic> problems = {};
  std::vector<std::string> notes = {};
  QString path = {};
  QString name = {};
  bool isUnsaved = false;
  bool isPartlyRead = false;  // as a program knew that had read the file
};

class OpenPipeline : public QObject {
  Q_OBJECT

 public:
  const PipelineDocument& document() const { return m_history.document(); }
  /// Applies an edit; a refusal is emitted as a sentence. Edits with the same non-empty mergeKey become one entry.
  bool apply(const Edit& edit, const QString& mergeKey = {});
  void undo();
  void redo();
  /// Undoes or redoes to this number of applied entries, as one change.
  void goTo(std::size_t depth);
  const History& history() const { return m_history; }

  Result<void> save(const QString& path);
  /// Empty for a document that was never saved.
  const QString& path() const { return m_path; }
  QString displayName() const;
  bool isModified() const { return m_history.isModified(); }
  /// The file does not hold what is here any more.
  void markUnsaved();

  /// Problems that were found while reading the file.
  const std::vector<Diagnostic>& problems() const { return m_problems; }
  /// The file holds what saving into it would lose: a second value under the same key, for one. Most of what could not
  /// be read is kept and written back.
  bool isPartlyRead() const { return m_isPartlyRead; }
  /// Notes on an imported model, as sentences.
  const QStringList& notes() const { return m_notes; }

  /// Replaces everything. The caller emits changed() and replaced() once all parts of the session follow it.
  void take(ReadPipeline read);

 Q_SIGNALS:
  void changed();
  /// Another document was opened.
  void replaced();
  void editRefused(const QString& sentence);

 private:
  History m_history;
  QString m_path;
  QString m_name;
  std::vector<Diagnostic> m_problems;
  bool m_isPartlyRead = false;
  QStringList m_notes;
};

}  // namespace fuseline::ui
