// Compares on a thread of its own: the base is analysed in the same way as the session's document.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/pipeline_comparison.h"

#include "core/compare/take_back.h"
#include "core/document/file_format.h"
#include "core/export/any_document.h"
#include "core/profile/run_file.h"
#include "core/runtime/measured_pipeline.h"
#include "core/runtime/pipeline_run.h"
#include "ui/session/run_files.h"
#include "ui/theme/format.h"

#include <QFileInfo>

#include <utility>

namespace fuseline::ui {

namespace {

Result<PipelineDocument> documentOfRun(const QString& path) {
  const Result<RunRecord> record = loadRunRecord(path.toStdString());
  if (!record) return record.error();
  Result<MeasuredPipeline> measured = measuredPipeline(*record);
  if (!measured) return Error{path.toStdString() + ": " + measured.error().message};
  return std::move(measured->document);
}

/// Reads the file as far as possible. Errors in it are reported by its own problems, unless nothing could be read.
Result<PipelineDocument> documentOf(const QString& path) {
  if (isRunFile(path)) return documentOfRun(path);
  Result<LoadedDocument> loaded = loadOrImportDocument(path.toStdString());
  if (!loaded) return loaded.error();
  const bool isNothing = loaded->document == PipelineDocument() && hasErrors(loaded->diagnostics);
  if (isNothing) return Error{errorText(loaded->diagnostics, path.toStdString())};
  return std::move(loaded->document);
}

}  // namespace

PipelineComparison::PipelineComparison(Session& session, QObject* parent) : QObject(parent), m_session(session) {
  m_pool.setMaxThreadCount(1);
  connect(&session.plan(), &LivePlan::analysisChanged, this, &PipelineComparison::compare);
  connect(&session.pipeline(), &OpenPipeline::replaced, this, &PipelineComparison::end);
}

PipelineComparison::~PipelineComparison() {
  m_pool.clear();
  m_pool.waitForDone();
}

Result<void> PipelineComparison::startWithFile(const QString& path) {
  Result<PipelineDocument> base = documentOf(path);
  if (!base) return base.error();
  start(std::move(*base), QFileInfo(path).fileName());
  m_baseFile = path;
  return {};
}

Result<void> PipelineComparison::startWithSaved() {
  if (m_session.pipeline().path().isEmpty()) return Error{tr("This pipeline has not been saved yet.").toStdString()};
  Result<PipelineDocument> base = documentOf(m_session.pipeline().path());
  if (!base) return base.error();
  start(std::move(*base), tr("%1 as saved").arg(m_session.pipeline().displayName()));
  return {};
}

void PipelineComparison::start(PipelineDocument base, const QString& name) {
  m_base = std::make_shared<const PipelineDocument>(std::move(base));
  m_baseName = name;
  m_baseFile.clear();
  m_result = std::make_shared<const ComparisonResult>();
  ++m_number;
  Q_EMIT changed();
  if (!m_session.plan().isAnalysing()) compare();
}

void PipelineComparison::end() {
  if (!isOn()) return;
  m_pool.clear();
  m_base.reset();
  m_baseName.clear();
  m_baseFile.clear();
  m_result = std::make_shared<const ComparisonResult>();
  m_doneNumber = ++m_number;
  Q_EMIT changed();
}

/// The analysis is the one of the document: the session gives no older ones.
void PipelineComparison::compare() {
  if (!isOn()) return;
  m_pool.clear();  // what waits would be dropped
  m_pool.start([this, number = ++m_number, base = m_base, document = m_session.pipeline().document(),
                analysis = m_session.plan().analysis(), analyzeBase = m_session.plan().analysisOf(*m_base)] {
    auto result = std::make_shared<ComparisonResult>(
        ComparisonResult{.base = base, .document = document, .baseAnalysis = analyzeBase(), .analysis = analysis});
    result->difference = pipelineDifference({*base, *result->baseAnalysis}, {document, *analysis});
    result->map = changeMap(*base, document, result->difference.changes);
    QMetaObject::invokeMethod(
        this, [this, number, result] { accept(number, result); }, Qt::QueuedConnection);
  });
}

void PipelineComparison::accept(quint64 number, std::shared_ptr<const ComparisonResult> result) {
  if (number != m_number || !isOn()) return;
  m_doneNumber = number;
  m_result = std::move(result);
  Q_EMIT changed();
}

Result<Edit> PipelineComparison::editToTakeBack(int change) const {
  if (change < 0 || change >= static_cast<int>(changes().size()))
    return Error{tr("Only changes to the pipeline itself can be reverted.").toStdString()};
  return fuseline::takeBack(*m_result->base, m_session.pipeline().document(), changes(),
                            changes()[static_cast<std::size_t>(change)]);
}

bool PipelineComparison::takeBack(int change) {
  const Result<Edit> edit = editToTakeBack(change);
  if (!edit) Q_EMIT m_session.pipeline().editRefused(toQt(edit.error().message));
  return edit && m_session.pipeline().apply(*edit);
}

}  // namespace fuseline::ui
