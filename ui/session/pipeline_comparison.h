// PipelineComparison: the session's document beside another one, compared again whenever the session's analysis
// changes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/compare/change_map.h"
#include "core/plan/pipeline_difference.h"
#include "ui/session/session.h"

#include <QObject>
#include <QString>
#include <QThreadPool>

#include <memory>

namespace fuseline::ui {

/// Both documents as they were compared, and what came of it. Immutable.
struct ComparisonResult {
  std::shared_ptr<const PipelineDocument> base = std::make_shared<const PipelineDocument>();
  PipelineDocument document;
  std::shared_ptr<const Analysis> baseAnalysis = std::make_shared<const Analysis>();
  std::shared_ptr<const Analysis> analysis = std::make_shared<const Analysis>();
  PipelineDifference difference = {};
  ChangeMap map = {};
};

class PipelineComparison : public QObject {
  Q_OBJECT

 public:
  explicit PipelineComparison(Session& session, QObject* parent = nullptr);
  ~PipelineComparison() override;

  /// Compares with the pipeline in a file of any kind that can be opened.
  /// Errors: those of opening it; what was compared before stays.
  Result<void> startWithFile(const QString& path);
  /// Compares with the document's own file. Errors: it was never saved, or its file cannot be read.
  Result<void> startWithSaved();
  bool canStartWithSaved() const { return !m_session.pipeline().path().isEmpty() && m_session.pipeline().isModified(); }
  void start(PipelineDocument base, const QString& name);
  void end();

  bool isOn() const { return m_base != nullptr; }
  /// Is there a newer document, or base, than the result is about?
  bool isComparing() const { return isOn() && m_doneNumber != m_number; }
  const QString& baseName() const { return m_baseName; }
  /// The file that the base was read from; empty: it is in none, or the file has changed since.
  const QString& baseFile() const { return m_baseFile; }
  /// The last result; never null. Empty without a comparison.
  const std::shared_ptr<const ComparisonResult>& result() const { return m_result; }
  const std::vector<DocumentChange>& changes() const { return m_result->difference.changes; }

  /// The edit of the document as it is now that takes a change of the result back. Errors: as fuseline::takeBack().
  Result<Edit> editToTakeBack(int change) const;
  /// Applies it; a refusal is emitted by the session as a sentence. False: nothing was changed.
  bool takeBack(int change);

 Q_SIGNALS:
  /// Another result, a comparison that has begun, or one that has ended.
  void changed();

 private:
  void compare();
  void accept(quint64 number, std::shared_ptr<const ComparisonResult> result);

  Session& m_session;
  std::shared_ptr<const PipelineDocument> m_base;  // none: nothing is compared
  QString m_baseName;
  QString m_baseFile;
  std::shared_ptr<const ComparisonResult> m_result = std::make_shared<const ComparisonResult>();
  // Counts what was asked for; a result with an older number is dropped.
  quint64 m_number = 0;
  quint64 m_doneNumber = 0;
  QThreadPool m_pool;
};

}  // namespace fuseline::ui
