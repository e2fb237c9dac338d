// Walks the points of a sweep.
//
// Each next step is taken from the event loop: whoever hears of the same event of the worker still sees a sweep.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/sweep_session.h"

#include "core/edit/apply_edit.h"
#include "core/profile/run_command.h"
#include "core/profile/run_file.h"
#include "core/runtime/quantized_linears.h"
#include "core/support/atomic_file.h"
#include "ui/theme/format.h"

#include <QFileInfo>

#include <algorithm>
#include <utility>

namespace fuseline::ui {

SweepSession::SweepSession(Session& session, QObject* parent) : QObject(parent), m_session(session) {
  m_pool.setMaxThreadCount(1);
  connect(&session.runner().worker(), &WorkerClient::finished, this, &SweepSession::take);
  connect(&session.runner().worker(), &WorkerClient::failed, this, &SweepSession::fail);
  connect(&session.runner(), &Runner::cancelWanted, this, [this] { m_isStopping = true; });
  connect(&session.pipeline(), &OpenPipeline::replaced, this, &SweepSession::followReplacement);
  connect(&session.pipeline(), &OpenPipeline::changed, this, &SweepSession::stalenessChanged);
  for (const auto signal : {&RunSetup::passChanged, &RunSetup::runTargetChanged})
    connect(&session.setup(), signal, this, &SweepSession::stalenessChanged);
}

SweepSession::~SweepSession() {
  m_pool.clear();
  m_pool.waitForDone();
}

void SweepSession::start(ShapeSweep sweep) {
  if (m_session.runner().isRunning()) return;
  m_points = sweep.points();
  m_request = m_session.runner().request();
  m_request.settings.measuresPeaks = false;  // at every point anew
  m_request.tensorsFile.clear();             // they have one size
  m_document = m_session.pipeline().document();
  m_path = m_session.pipeline().path();
  m_result = SweepResult{.pipelineName = m_request.pipelineName,
                         .deviceName = m_request.settings.device,
                         .sweep = std::move(sweep),
                         .rows = {}};
  m_ended.clear();
  m_isStopping = false;
  m_isRunning = true;
  m_session.runner().setSweeping(true);
  Q_EMIT changed();
  measureNext();
}

void SweepSession::stop() {
  if (m_isRunning) m_session.runner().cancel();
}

QString SweepSession::progress() const {
  if (!m_isRunning || m_result->rows.size() == numPoints()) return {};
  return tr("%1 of %2: %3").arg(m_result->rows.size() + 1).arg(numPoints()).arg(toQt(point().name()));
}

// ---------------------------------------------------------------------------------------------------------- measuring

void SweepSession::measureNext() {
  if (m_isStopping)
    return end(
        tr("Stopped after %1 of %2 points. The measured points are kept.").arg(m_result->rows.size()).arg(numPoints()));
  if (m_result->rows.size() == numPoints()) return end({});
  RunSpec settings = m_request.settings;
  point().applyTo(settings);
  point().recipe.empty() ? measure(settings) : checkAndMeasure(std::move(settings));
}

void SweepSession::measure(const RunSpec& settings) {
  RunRequest request = m_request;
  request.settings = settings;
  m_session.runner().worker().run(std::move(request));
}

/// A recipe that quantizes nothing at this size would be measured under a wrong name.
void SweepSession::checkAndMeasure(RunSpec settings) {
  m_pool.start([this, document = m_document, settings = std::move(settings)] {
    const Result<void> meant = checkQuantizes(document, settings);
    QMetaObject::invokeMethod(
        this,
        [this, meant, settings] {
          if (m_isStopping) return measureNext();
          if (meant) return measure(settings);
          refuse(meant.error().message);
          goOn();
        },
        Qt::QueuedConnection);
  });
}

/// A run that was stopped has too few rounds to stand beside the others.
void SweepSession::take(const RunRecord& record) {
  if (!m_isRunning) return;
  m_result->deviceName = record.deviceName();
  if (record.isPartial)
    m_isStopping = true;
  else
    addRow(*m_result, measuredRow(point(), record));
  goOn();
}

void SweepSession::fail(const QString& sentence) {
  if (!m_isRunning) return;
  const QString name = toQt(point().name());
  if (!m_isStopping) refuse(sentence.toStdString());
  if (m_isStopping || !m_session.runner().worker().isLost()) return goOn();
  end(tr("The device was lost at %1. Start the sweep again to measure the missing points.").arg(name));
}

void SweepSession::refuse(std::string reason) { addRow(*m_result, {.point = point(), .reason = std::move(reason)}); }

void SweepSession::goOn() {
  QMetaObject::invokeMethod(this, &SweepSession::measureNext, Qt::QueuedConnection);
  Q_EMIT changed();
}

void SweepSession::end(const QString& why) {
  m_isRunning = false;
  m_ended = why;
  if (std::exchange(m_isOrphaned, false)) forget();
  m_session.runner().setSweeping(false);
  Q_EMIT changed();
}

void SweepSession::forget() {
  m_result.reset();
  m_points.clear();
  m_ended.clear();
}

// -------------------------------------------------------------------------------------------------------- the document

/// One of the runs of this sweep, or its pipeline again.
bool SweepSession::isOwnDocument() const {
  const LastRun* const opened = m_session.results().openedRun();
  if (opened && QFileInfo(opened->origin->file).absolutePath() == QFileInfo(m_folder.path()).absoluteFilePath())
    return true;
  return !m_path.isEmpty() && m_session.pipeline().path() == m_path;
}

void SweepSession::followReplacement() {
  stop();
  m_isOrphaned = m_isRunning;  // until its worker has answered
  if (!m_isRunning && !isOwnDocument()) forget();
  Q_EMIT changed();
}

PipelineDocument SweepSession::withoutAxes(PipelineDocument document) const {
  for (const SweepAxis& axis : m_result->sweep.axes)
    (void)applyEdit(document, SetSymbol{.name = axis.symbol, .value = axis.sizes.front()}).hasValue();
  if (!m_result->sweep.recipes.empty()) (void)applyEdit(document, SetRecipe{}).hasValue();
  return document;
}

bool SweepSession::isStale() const {
  if (!m_result) return false;
  const LastRun* const opened = m_session.results().openedRun();
  const std::string& device = opened ? opened->device : m_session.setup().runTarget().device;
  return device != m_request.settings.device || m_session.setup().pass() != m_request.settings.pass ||
         !meansTheSame(withoutAxes(m_document), withoutAxes(m_session.pipeline().document()));
}

// --------------------------------------------------------------------------------------------------------------- files

Result<void> SweepSession::saveCsv(const QString& path) const {
  if (!m_result) return Error{tr("No measurements yet. Start a sweep first.").toStdString()};
  return writeFileAtomically(path.toStdString(), [&](std::ostream& file) { file << sweepCsv(*m_result); });
}

Result<QString> SweepSession::writeRun(std::size_t row) const {
  const SweepRow& measured = m_result->rows[row];
  const QString path = m_folder.filePath(toQt(measured.point.name()).replace(u' ', u'_') + QStringLiteral(".fuserun"));
  const Result<void> saved = saveRunRecord(*measured.record, path.toStdString());
  return saved ? Result<QString>(path) : Result<QString>(saved.error());
}

Result<std::string> SweepSession::command() const {
  if (!m_result) return Error{tr("No measurements yet. Start a sweep first.").toStdString()};
  // Saved since, perhaps.
  const QString path = m_path.isEmpty() && !isStale() ? m_session.pipeline().path() : m_path;
  if (path.isEmpty())
    return Error{tr("The pipeline has not been saved yet. Save it first; the command needs a file.").toStdString()};
  if (std::ranges::count(m_result->sweep.recipes, std::string()) > 0)
    return Error{tr("The pipeline's recipe has custom fields and cannot be swept together with other recipes. Select "
                    "only this recipe.")
                     .toStdString()};
  RunSpec settings = m_request.settings;
  settings.rules = RunSpec().rules;  // the document decides
  return sweepCommand(m_result->sweep, std::move(settings), path.toStdString());
}

}  // namespace fuseline::ui
