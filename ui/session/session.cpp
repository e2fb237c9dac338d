// Session: edits in; snapshots, results and signals out.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/session.h"

#include "core/edit/canonical_order.h"
#include "core/edit/renaming.h"
#include "core/export/html_comparison.h"
#include "core/lowering/lowering.h"
#include "core/plan/capturable_tensors.h"
#include "core/profile/run_file.h"
#include "core/runtime/bindings.h"
#include "core/runtime/pipeline_run.h"
#include "core/support/atomic_file.h"
#include "core/tensor/safetensors.h"
#include "ui/session/baselines.h"
#include "ui/session/blank_pipeline.h"
#include "ui/session/edits.h"
#include "ui/session/live_analysis.h"
#include "ui/theme/format.h"

#include <QFileInfo>

#include <algorithm>
#include <utility>

namespace fuseline::ui {

namespace {

QStringList listOf(const std::vector<std::string>& texts) {
  QStringList list;
  for (const std::string& text : texts) list.append(toQt(text));
  return list;
}

bool hasRounds(const RunRecord& record) {
  return std::ranges::any_of(record.variants, [](const VariantRecord& variant) { return !variant.endToEndNs.empty(); });
}

/// One that was stopped early does not replace a complete one of the same pipeline. Empty: it is shown.
QString whyNotShown(const RunRecord& record, const std::optional<LastRun>& last) {
  if (!record.isPartial) return {};
  if (!hasRounds(record)) return Session::tr("Stopped before the first round. Nothing was measured.");
  const bool isBetter = last && !last->record.isPartial && !last->isStale;
  return isBetter ? Session::tr("Stopped early. The previous complete result is kept.") : QString();
}

/// Those that reading what is saved would find.
std::vector<Diagnostic> problemsWhenSaved(const PipelineDocument& document) {
  return parseDocument(serialize(document)).diagnostics;
}

/// Parts with errors are written back unchanged; otherwise the error would disappear on saving.
bool losesWhenSaved(const std::vector<Diagnostic>& problems, const PipelineDocument& document) {
  const auto numErrors = [](const std::vector<Diagnostic>& all) {
    return std::ranges::count(all, Severity::Error, &Diagnostic::severity);
  };
  return hasErrors(problems) && numErrors(problemsWhenSaved(document)) < numErrors(problems);
}

/// Keeps numerics of the same pipeline with the run, so that they are exported together.
void keepNumerics(LastRun& run, const LastNumerics& numerics) {
  const bool isSame = run.pass == numerics.pass && run.device == numerics.device && run.source == numerics.source &&
                      !run.origin && meansTheSame(run.document, numerics.document);
  if (isSame) run.record.numerics = summarized(numerics.report);
}

/// "A: before the change"
std::vector<NamedRun> namedRunsOf(const Baselines& baselines) {
  std::vector<NamedRun> runs;
  for (const Baseline& each : baselines.all())
    runs.push_back({QStringLiteral("%1: %2").arg(each.letter(), each.name).toStdString(), *each.record});
  return runs;
}

}  // namespace

const TensorSummary* LastCapture::find(std::string_view tensor) const {
  const auto found = std::ranges::find(tensors, tensor, &TensorSummary::name);
  return found == tensors.end() ? nullptr : &*found;
}

Session::Session(SessionSettings settings, QObject* parent)
    : QObject(parent),
      m_capabilitiesOf(std::move(settings.capabilitiesOf)),
      m_layOut(std::move(settings.layOut)),
      m_liveAnalysis(std::make_unique<LiveAnalysis>()),
      m_baselines(new Baselines(this)),
      m_worker(settings.workerCommand) {
  refreshCapabilities();
  // One thread: analyses of one document are only ever superseded, never needed at the same time.
  m_pool.setMaxThreadCount(1);
  connect(&m_worker, &WorkerClient::progress, this, &Session::runProgress);
  connect(&m_worker, &WorkerClient::finished, this, &Session::finishRun);
  connect(&m_worker, &WorkerClient::numericsMeasured, this, &Session::finishNumerics);
  connect(&m_worker, &WorkerClient::tensorsCaptured, this, &Session::finishCapture);
  connect(m_baselines, &Baselines::changed, this, &Session::baselinesChanged);
  for (const auto signal : {&Session::runStarted, &Session::runFinished, &Session::numericsFinished,
                            &Session::tensorsCaptured, &Session::runDropped, &Session::sweepingChanged})
    connect(this, signal, this, &Session::runningChanged);
  connect(this, &Session::runFailed, this, &Session::runningChanged);
  connect(&m_worker, &WorkerClient::failed, this, [this](const QString& sentence) {
    if (m_isSweeping) return;
    if (m_isRunOrphaned) return Q_EMIT runDropped();
    Q_EMIT runFailed(sentence);
  });
}

Session::~Session() {
  m_pool.clear();
  m_pool.waitForDone();
}

bool Session::apply(const Edit& edit, const QString& mergeKey) {
  if (document().isReadOnly()) {
    Q_EMIT editRefused(tr(
        "This file was written by a newer version of Fuseline. You can view and run it. Update Fuseline to edit it."));
    return false;
  }
  const Result<void> applied = m_history.apply(edit, mergeKey.toStdString());
  if (!applied) {
    Q_EMIT editRefused(toQt(applied.error().message));
    return false;
  }
  noteChange();
  return true;
}

bool Session::rename(const QString& id, const QString& newId) {
  const bool isRenamed = apply(renameNode(document(), id.toStdString(), newId.toStdString()));
  if (isRenamed) select({newId});
  return isRenamed;
}

void Session::undo() {
  if (!m_history.canUndo()) return;
  m_history.undo();
  noteChange();
}

void Session::redo() {
  if (!m_history.canRedo()) return;
  m_history.redo();
  noteChange();
}

void Session::goTo(std::size_t depth) {
  if (depth == m_history.depth() || depth > m_history.size()) return;
  m_history.goTo(depth);
  noteChange();
}

void Session::openText(const std::string& text, const QString& name) {
  LoadedDocument loaded = parseDocument(text);
  replaceDocument({.document = std::move(loaded.document), .problems = std::move(loaded.diagnostics), .name = name});
}

Result<void> Session::open(const QString& path) {
  Result<ReadFile> file = readPipelineFile(path);
  if (!file) return file.error();
  show(std::move(*file));
  return {};
}

void Session::show(ReadFile file) {
  const QFileInfo info(file.path);
  if (file.run) return showRun(info.absoluteFilePath(), std::move(*file.run));
  const bool isTakenOut = file.loaded.isTakenOut;
  replaceDocument({.document = std::move(file.loaded.document),
                   .problems = std::move(file.loaded.diagnostics),
                   .notes = std::move(file.loaded.notes),
                   .path = isTakenOut ? QString() : info.absoluteFilePath(),
                   .name = isTakenOut ? info.completeBaseName() : QString()});
}

void Session::recover(const std::string& text, const QString& path, const QString& name, bool isPartlyRead) {
  LoadedDocument loaded = parseDocument(text);
  replaceDocument({.document = std::move(loaded.document),
                   .problems = std::move(loaded.diagnostics),
                   .path = path,
                   .name = name,
                   .run = {},
                   .isUnsaved = true,
                   .isPartlyRead = isPartlyRead});
}

Result<void> Session::openRun(const QString& path) {
  Result<ReadFile> file = readRunFile(path);
  if (!file) return file.error();
  show(std::move(*file));
  return {};
}

void Session::showRun(const QString& path, ReadFile::Run opened) {
  auto& [record, measured] = opened;
  const QString name = toQt(record.title());
  LastRun run{.document = measured.document, .pass = measured.pass, .device = record.settings.device};
  run.record = std::move(record);
  run.origin = RunOrigin{.file = path, .changes = listOf(measured.changes)};
  replaceDocument({.document = std::move(measured.document), .name = name, .run = std::move(run)});
}

Result<void> Session::save(const QString& path) {
  Result<void> saved = saveDocument(documentToSave(m_history), path.toStdString());
  if (!saved) return saved;
  m_path = QFileInfo(path).absoluteFilePath();
  m_history.markSaved();
  m_isPartlyRead = false;
  if (!m_fileProblems.empty()) m_fileProblems = problemsWhenSaved(document());
  noteChange();
  return saved;
}

void Session::markUnsaved() {
  m_history.markUnsaved();
  Q_EMIT documentChanged();
}

QString Session::displayName() const {
  if (!m_path.isEmpty()) return QFileInfo(m_path).fileName();
  return m_name.isEmpty() ? tr("Untitled") : m_name;
}

void Session::replaceDocument(Opened opened) {
  if (m_lastRun) Q_EMIT lastRunLeaving();
  m_history = History(std::move(opened.document));
  opened.isUnsaved ? m_history.markUnsaved() : m_history.markSaved();
  m_fileProblems = std::move(opened.problems);
  m_isPartlyRead = opened.isPartlyRead || losesWhenSaved(m_fileProblems, document());
  m_fileNotes = listOf(opened.notes);
  m_path = opened.path;
  m_name = opened.name;
  m_lastNumerics.reset();
  m_lastCapture.reset();
  setTensorsFile({});
  m_isRunOrphaned = isRunning();
  m_worker.cancel();
  takeRun(std::move(opened.run));
  m_analysis = std::make_shared<const Analysis>();
  m_selection.clear();
  m_selectedRule.clear();
  noteChange();
  Q_EMIT documentReplaced();
  Q_EMIT selectionChanged();
}

/// The pass and the device that fusions are planned for follow an opened run.
void Session::takeRun(std::optional<LastRun> run) {
  ++m_numPlannings;
  m_lastRun = std::move(run);
  m_runFile = openedRun() ? openedRun()->origin->file : QString();
  if (m_lastRun) takeGains(*m_lastRun);
  refreshCapabilities();
  if (!m_lastRun || m_lastRun->pass == m_pass) return;
  m_pass = m_lastRun->pass;
  Q_EMIT passChanged();
}

void Session::noteChange() {
  ++m_generation;
  refreshStaleness();
  dropVanishedSelection();
  Q_EMIT documentChanged();
  startAnalysis();
}

AnalysisOptions Session::analysisOptions() const {
  AnalysisOptions options{.lowering = {.pass = m_pass}, .capabilities = m_capabilities};
  options.capability = parseCapability(plannedDevice().architecture);
  options.ranks = m_planTarget.ranks;
  if (m_planTarget.architecture.empty()) return options;
  options.capabilities = m_capabilitiesOf ? plannedCapabilities(m_capabilitiesOf("cuda")) : Capabilities();
  options.capability = parseCapability(m_planTarget.architecture);
  return options;
}

/// As far as figures of runs depend on them.
RunSpec Session::plannedSettings() const { return {.device = plannedDevice().device, .pass = m_pass}; }

/// Gains are told from then on. The plan stays what it was: what runs measured becomes a choice only where the user
/// switches a fusion.
void Session::takeGains(const LastRun& run) {
  RunGains gains = *m_gains;
  gains.take(run.record, run.origin ? QFileInfo(run.origin->file).fileName().toStdString() : "the last run");
  m_gains = std::make_shared<const RunGains>(std::move(gains));
}

RunTarget Session::plannedDevice() const {
  const LastRun* const opened = openedRun();
  if (!opened) return m_runTarget;
  return {.device = opened->device, .architecture = opened->record.fact("architecture")};
}

void Session::refreshCapabilities() {
  if (m_capabilitiesOf) m_capabilities = m_capabilitiesOf(plannedDevice().device);
}

std::function<AnalysisOptions(const PipelineDocument&)> Session::planningOptions() const {
  const bool isPlannedForElsewhere = m_planTarget != PlanTarget();
  auto gains = isPlannedForElsewhere ? std::make_shared<const RunGains>() : m_gains;
  return [options = analysisOptions(), gains = std::move(gains),
          settings = plannedSettings()](const PipelineDocument& document) {
    AnalysisOptions withGains = options;
    withGains.gains = gains->gainsFor(document, settings);
    return withGains;
  };
}

std::function<AnalysisOptions()> Session::optionsFor(const PipelineDocument& document) const {
  return [document, options = planningOptions()] { return options(document); };
}

std::function<std::shared_ptr<const Analysis>()> Session::analysisOf(const PipelineDocument& document) const {
  return [document, options = planningOptions()] { return analyzeToShow(document, options(document)); };
}

void Session::startAnalysis() {
  m_pool.clear();  // a waiting analysis of an older document is of no use any more
  auto document = std::make_shared<PipelineDocument>(this->document());
  m_pool.start([this, document, optionsFor = planningOptions(), generation = m_generation, plans = m_numPlannings] {
    const AnalysisOptions options = optionsFor(*document);
    auto analysis = m_liveAnalysis->next(std::move(*document), options, plans);
    QMetaObject::invokeMethod(
        this, [this, generation, analysis = std::move(analysis)] { acceptAnalysis(generation, analysis); },
        Qt::QueuedConnection);
  });
}

/// With other settings than before.
void Session::planAnew() {
  ++m_numPlannings;
  startAnalysis();
}

void Session::acceptAnalysis(quint64 generation, std::shared_ptr<const Analysis> analysis) {
  if (generation != m_generation) return;
  m_analysis = std::move(analysis);
  m_analysedGeneration = generation;
  compareWithPlan();
  Q_EMIT analysisChanged(m_analysis);
}

/// Another version of Fuseline, or switches of fusions that the run was given, may have made another plan.
void Session::compareWithPlan() {
  if (openedRun() && !m_lastRun->isStale)
    m_lastRun->origin->differingSteps = listOf(differingSteps(m_lastRun->record, *m_analysis));
}

void Session::select(const QSet<QString>& ids) {
  if (ids != m_selection) selectFusion(ids, {});
}

void Session::selectFusion(const QSet<QString>& ids, const QString& rule) {
  if (ids == m_selection && rule == m_selectedRule) return;
  m_selection = ids;
  m_selectedRule = rule;
  Q_EMIT selectionChanged();
}

QString Session::singleSelection() const { return m_selection.size() == 1 ? *m_selection.begin() : QString(); }

void Session::dropVanishedSelection() {
  QSet<QString> left;
  for (const QString& id : std::as_const(m_selection)) {
    if (document().idExists(id.toStdString())) left.insert(id);
  }
  select(left);
}

void Session::setPass(PassKind pass) {
  if (pass == m_pass) return;
  m_pass = pass;
  ++m_generation;
  refreshStaleness();
  Q_EMIT passChanged();
  planAnew();
}

void Session::setRunTarget(const RunTarget& target) {
  if (target == m_runTarget) return;
  const bool isAnotherDevice = target.place() != m_runTarget.place();
  m_runTarget = target;
  if (isAnotherDevice) {
    refreshCapabilities();
    ++m_generation;
    refreshStaleness();
    planAnew();
  }
  Q_EMIT runTargetChanged();
}

void Session::setPlanTarget(const PlanTarget& target) {
  if (target == m_planTarget) return;
  m_planTarget = target;
  ++m_generation;
  planAnew();
}

void Session::setTensorsFile(const QString& path) {
  if (path == m_tensorsFile) return;
  m_tensorsFile = path;
  refreshStaleness();
  Q_EMIT tensorsFileChanged();
  Q_EMIT tensorSourceChanged();
}

void Session::setRunOptions(const RunSpec& options) {
  const bool hasOtherSeed = options.seed != m_runOptions.seed;
  m_runOptions = options;
  if (!hasOtherSeed) return;
  refreshStaleness();
  Q_EMIT tensorSourceChanged();
}

TensorSource Session::tensorSource() const { return {.seed = m_runOptions.seed, .file = m_tensorsFile}; }

Result<NamedTensors> Session::givenTensors() const {
  return m_tensorsFile.isEmpty() ? NamedTensors{} : readSafetensors(m_tensorsFile.toStdString());
}

Result<void> Session::saveParameters(const QString& path) const {
  const LoweredGraph lowered = lower(document());
  if (const std::string problems = errorText(lowered.diagnostics, displayName().toStdString()); !problems.empty())
    return Error{problems};
  const Result<NamedTensors> given = givenTensors();
  if (!given) return given.error();
  const Result<NamedTensors> bindings = makeBindings(lowered.graph, m_runOptions.seed, *given);
  if (!bindings) return bindings.error();
  return writeSafetensors(path.toStdString(), parametersOf(lowered.graph, *bindings));
}

Result<void> Session::saveRun(const QString& path) const {
  if (!m_lastRun) return Error{tr("No measurements yet. Run the pipeline first.").toStdString()};
  return saveRunRecord(m_lastRun->record, path.toStdString());
}

void Session::setRunNote(const std::string& note) {
  if (m_lastRun) m_lastRun->record.note = note;
}

void Session::setRowNote(const RowNote& note) {
  if (!m_lastRun) return;
  m_lastRun->record.setNoteOf(note);
  Q_EMIT rowNotesChanged();
}

void Session::setStretchNote(const StretchNote& note) {
  if (!m_lastRun) return;
  putStretchNote(m_lastRun->record.stretchNotes, note);
  Q_EMIT stretchNotesChanged();
}

Result<void> Session::exportRun(const Exporter& exporter, const QString& path) const {
  if (!m_lastRun) return Error{tr("No measurements yet. Run the pipeline first.").toStdString()};
  const Result<std::string> text = exporter.writeWith(m_lastRun->record, namedRunsOf(*m_baselines), m_layOut);
  if (!text) return text.error();
  return writeFileAtomically(path.toStdString(), [&](std::ostream& file) { file << *text; });
}

Result<PipelineText> Session::exportPipeline(const PipelineExporter& exporter) const {
  const AnalysisOptions options = analysisOptions();
  const Analysis analysis = analyze(document(), options);
  if (!analysis.isRunnable()) return Error{errorText(analysis.lowered.diagnostics, displayName().toStdString())};
  Result<NamedTensors> given = givenTensors();
  if (!given) return given.error();
  const auto tensors = given->empty() ? nullptr : std::make_shared<const NamedTensors>(std::move(*given));
  return exporter.write({.name = QFileInfo(displayName()).completeBaseName().toStdString(),
                         .document = document(),
                         .options = options,
                         .analysis = analysis,
                         .seed = m_runOptions.seed,
                         .tensors = tensors,
                         .layOut = m_layOut});
}

void Session::run() { start(runRequest(RunPurpose::Times)); }

void Session::runBeside(const PipelineDocument& base, const QString& name) {
  RunRequest request = runRequest(RunPurpose::Times);
  request.besideText = serialize(base);
  request.besideName = name.toStdString();
  start(std::move(request));
}

void Session::measureNumerics() { start(runRequest(RunPurpose::Numerics)); }

void Session::captureTensors(const std::vector<std::string>& tensors, PlanChoice plan) {
  if (isRunning()) return;
  m_capturedPlan = plan;
  m_captureFile = m_captureFolder.filePath(QStringLiteral("%1.safetensors").arg(++m_numCaptures));
  RunRequest request = runRequest(RunPurpose::Capture);
  request.variants = {plan == PlanChoice::Fused ? "fused" : "unfused"};
  request.capture = {.tensors = tensors, .file = m_captureFile.toStdString(), .limitBytes = kCaptureLimitBytes};
  start(std::move(request));
}

void Session::cancelRun() {
  Q_EMIT cancelWanted();
  m_worker.cancel();
}

void Session::setSweeping(bool isSweeping) {
  if (isSweeping == m_isSweeping) return;
  m_isSweeping = isSweeping;
  Q_EMIT sweepingChanged();
}

RunSpec Session::runSpec() const {
  RunSpec spec = m_runOptions;
  spec.device = m_runTarget.device;
  spec.pass = m_pass;
  if (m_runTarget.isGpu()) spec.timing = m_runTarget.timing;
  return spec;
}

RunRequest Session::runRequest(RunPurpose purpose) const {
  RunRequest request{.settings = runSpec(), .purpose = purpose};
  request.pipelineText = serialize(document());
  request.pipelineName = displayName().toStdString();
  request.settings.measuresPeaks = true;
  request.settings.rules.reset();  // the document decides
  request.tensorsFile = m_tensorsFile.toStdString();
  return request;
}

void Session::start(RunRequest request) {
  if (isRunning()) return;
  m_pendingRun = {.document = document(), .pass = m_pass, .device = m_runTarget.place(), .source = tensorSource()};
  m_isRunOrphaned = false;
  m_worker.run(std::move(request));
  Q_EMIT runStarted();
}

void Session::finishRun(const RunRecord& record, const RunRecord* beside) {
  if (m_isSweeping) return;
  if (m_isRunOrphaned) return Q_EMIT runDropped();
  m_pendingRun.record = record;
  const QString refusal = whyNotShown(record, openedRun() ? std::nullopt : m_lastRun);
  if (refusal.isEmpty()) showOwnRun();
  refreshStaleness();
  Q_EMIT runFinished();
  if (!refusal.isEmpty()) return Q_EMIT runFailed(refusal);
  Q_EMIT measured();
  if (beside) pinBeside(*beside);  // what it says is not about the run
}

/// In place of the one that took turns with the run before.
void Session::pinBeside(const RunRecord& beside) {
  if (const Baseline* old = m_baselines->oldTurns()) m_baselines->unpin(old->slot);
  if (const Result<void> pinned = m_baselines->pin(beside); !pinned) Q_EMIT runFailed(toQt(pinned.error().message));
}

/// Whether the run that has just ended was stopped, while a complete one of the same pipeline is shown.
/// From here on fusions are planned for the run target again.
void Session::showOwnRun() {
  if (m_lastRun) Q_EMIT lastRunLeaving();
  const bool wasPlannedForAnother = openedRun() != nullptr;
  m_lastRun = m_pendingRun;
  m_runFile.clear();
  if (m_lastNumerics) keepNumerics(*m_lastRun, *m_lastNumerics);
  takeGains(*m_lastRun);
  if (wasPlannedForAnother) refreshCapabilities();
  ++m_generation;
  planAnew();
}

void Session::finishNumerics(const NumericsReport& report) {
  if (m_isRunOrphaned) return Q_EMIT runDropped();
  m_lastNumerics = LastNumerics{.report = report,
                                .document = m_pendingRun.document,
                                .pass = m_pendingRun.pass,
                                .device = m_pendingRun.device,
                                .source = m_pendingRun.source};
  if (m_lastRun) keepNumerics(*m_lastRun, *m_lastNumerics);
  refreshStaleness();
  Q_EMIT numericsFinished();
}

void Session::finishCapture(const std::vector<TensorSummary>& tensors) {
  if (m_isRunOrphaned) return Q_EMIT runDropped();
  if (!QFileInfo::exists(m_captureFile)) {
    Q_EMIT runFailed(tr("The captured tensors are in %1 on the worker's machine. Capture them there: fuseline run FILE "
                        "--capture OP --captured OUT.safetensors")
                         .arg(m_captureFile));
    return;
  }
  Result<std::shared_ptr<const CapturedFile>> file = CapturedFile::open(m_captureFile);
  if (!file) {
    Q_EMIT runFailed(toQt(file.error().message));
    return;
  }
  m_lastCapture = LastCapture{.tensors = tensors,
                              .file = std::move(*file),
                              .plan = m_capturedPlan,
                              .document = m_pendingRun.document,
                              .pass = m_pendingRun.pass,
                              .device = m_pendingRun.device,
                              .source = m_pendingRun.source};
  refreshStaleness();
  Q_EMIT tensorsCaptured();
}

/// A run that was opened was measured elsewhere: the device that runs would use here does not make it older.
void Session::refreshStaleness() {
  const auto isStale = [this](const auto& last, const std::string& device) {
    return last.pass != m_pass || last.device != device || !meansTheSame(last.document, document());
  };
  if (m_lastRun) m_lastRun->isStale = isStale(*m_lastRun, plannedDevice().place());
  // Times do not depend on the numbers; these are the numbers.
  const auto areOthers = [&](const auto& last) {
    return last.source != tensorSource() || isStale(last, m_runTarget.place());
  };
  if (m_lastNumerics) m_lastNumerics->isStale = areOthers(*m_lastNumerics);
  if (m_lastCapture) m_lastCapture->isStale = areOthers(*m_lastCapture);
}

}  // namespace fuseline::ui
