// Session: owns the document, its history and the worker; the only bridge to threads and processes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/edit/history.h"
#include "core/export/exporter.h"
#include "core/export/pipeline_exporter.h"
#include "core/plan/analysis.h"
#include "core/profile/run_record.h"
#include "ui/session/captured_file.h"
#include "ui/session/read_file.h"
#include "ui/session/run_gains.h"
#include "ui/session/worker_client.h"

#include <QObject>
#include <QSet>
#include <QString>
#include <QTemporaryDir>
#include <QThreadPool>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fuseline::ui {

class Baselines;
class LiveAnalysis;

/// Settings from the hosting program.
struct SessionSettings {
  QStringList workerCommand;
  /// Kernels that a device has, so that plans can run there. Empty function or result: every kernel is
  /// assumed to exist.
  std::function<Capabilities(const std::string& deviceId)> capabilitiesOf = {};
  /// Layout for exported drawings, on this thread. Empty: exports have no drawings.
  LayOutGraph layOut = {};
};

/// Where pipelines run, and what their steps are timed by: RunSpec::device and timing.
struct RunTarget {
  std::string device = "cpu";
  std::string host = {};     // of the machine, for ssh; empty: this machine
  std::string architecture;  // "sm_90"; empty: fusions do not depend on it
  StepTiming timing = StepTiming::Auto;

  bool isGpu() const { return architecture.starts_with("sm_"); }
  /// "cuda:0@gpu-box": a device of another machine is another device.
  std::string place() const { return host.empty() ? device : device + "@" + host; }
  bool operator==(const RunTarget&) const = default;
};

/// Where fusions are planned for; runs do not follow it.
struct PlanTarget {
  std::string architecture;  // "sm_100"; empty: the run target's device
  std::int64_t ranks = 1;    // of the tensor-parallel group

  bool operator==(const PlanTarget&) const = default;
};

/// Origin of an opened run, in addition to its record.
struct RunOrigin {
  QString file;
  /// Settings that stand in the document because the run had them: "M = 8192".
  QStringList changes;
  /// Steps that were measured and are not in the plan as it is now, or the reverse. Known once the plan is.
  QStringList differingSteps;
};

/// Where the tensors of a run come from.
struct TensorSource {
  std::uint64_t seed = 0;
  QString file;  // empty: all are drawn
  bool operator==(const TensorSource&) const = default;
};

/// A run, what it ran, and whether the pipeline now means something else. Moving nodes does not make it stale.
struct LastRun {
  RunRecord record;
  PipelineDocument document;
  PassKind pass = PassKind::Training;
  std::string device;
  TensorSource source = {};
  std::optional<RunOrigin> origin = {};  // nothing: it was run here
  bool isStale = false;
};

/// Numerics of a run, and the pipeline that ran.
struct LastNumerics {
  NumericsReport report;
  PipelineDocument document;
  PassKind pass = PassKind::Training;
  std::string device;
  TensorSource source = {};
  bool isStale = false;
};

/// Which plan of the pipeline tensors are looked at in.
enum class PlanChoice { Fused, Unfused };

/// Tensors as one run left them, and what ran.
struct LastCapture {
  std::vector<TensorSummary> tensors;
  std::shared_ptr<const CapturedFile> file;
  PlanChoice plan = PlanChoice::Fused;
  PipelineDocument document;
  PassKind pass = PassKind::Training;
  std::string device;
  TensorSource source = {};
  bool isStale = false;

  /// nullptr: it was not captured.
  const TensorSummary* find(std::string_view tensor) const;
};

class Session : public QObject {
  Q_OBJECT

 public:
  explicit Session(SessionSettings settings, QObject* parent = nullptr);
  ~Session() override;

  /// With which others like it can be made.
  SessionSettings settings() const { return {m_worker.command(), m_capabilitiesOf, m_layOut}; }
  const PipelineDocument& document() const { return m_history.document(); }
  /// Applies an edit; a refusal is emitted as a sentence. Edits with the same non-empty mergeKey become one entry.
  bool apply(const Edit& edit, const QString& mergeKey = {});
  /// Gives an op, an input or an output another id, and selects it again; a refusal is emitted as a sentence.
  bool rename(const QString& id, const QString& newId);
  void undo();
  void redo();
  /// Undoes or redoes to this number of applied entries, as one change.
  void goTo(std::size_t depth);
  const History& history() const { return m_history; }

  /// A document from text that is in no file: a template. Problems become fileProblems().
  void openText(const std::string& text, const QString& name);
  /// The pipeline in a picture, a script or a model becomes a document in no file. Errors leave everything as it was.
  Result<void> open(const QString& path);
  /// Opens a document whose text was kept from a program that had not saved it to `path`, which may be empty.
  /// isPartlyRead: that program had not read all of the file.
  void recover(const std::string& text, const QString& path, const QString& name, bool isPartlyRead = false);
  /// Opens a run file: its pipeline as it was measured, as a document in no file, and the run as the last one. Until
  /// something is run here, fusions are planned for the device of that run. Errors leave everything as it was.
  Result<void> openRun(const QString& path);
  /// The same with a file that was read before, on another thread for one.
  void show(ReadFile file);
  Result<void> save(const QString& path);
  /// Empty for a document that was never saved.
  const QString& path() const { return m_path; }
  QString displayName() const;
  bool isModified() const { return m_history.isModified(); }
  /// The file does not hold what is here any more.
  void markUnsaved();

  /// Problems that were found while reading the file.
  const std::vector<Diagnostic>& fileProblems() const { return m_fileProblems; }
  /// The file holds what saving into it would lose: a second value under the same key, for one. Most of what could not
  /// be read is kept and written back.
  bool isPartlyRead() const { return m_isPartlyRead; }
  /// Notes on an imported model, as sentences.
  const QStringList& fileNotes() const { return m_fileNotes; }
  /// The last finished analysis; never null. It may be one edit behind the document.
  const std::shared_ptr<const Analysis>& analysis() const { return m_analysis; }
  /// Analyses a document, on any thread, as the session's own is analysed now: for the same device, pass and ranks.
  std::function<std::shared_ptr<const Analysis>()> analysisOf(const PipelineDocument& document) const;
  /// The options of that, to be called on any thread.
  std::function<AnalysisOptions()> optionsFor(const PipelineDocument& document) const;
  bool isAnalysing() const { return m_analysedGeneration != m_generation; }

  /// Ids of document ops, inputs and outputs: the one selection of all panels.
  const QSet<QString>& selection() const { return m_selection; }
  void select(const QSet<QString>& ids);
  /// Selects the ops of a fusion; selectedRule() names it until something else is selected.
  void selectFusion(const QSet<QString>& ids, const QString& rule);
  const QString& selectedRule() const { return m_selectedRule; }
  /// The only selected id; empty when there is none or more than one.
  QString singleSelection() const;

  PassKind pass() const { return m_pass; }
  void setPass(PassKind pass);
  const RunTarget& runTarget() const { return m_runTarget; }
  void setRunTarget(const RunTarget& target);
  const PlanTarget& planTarget() const { return m_planTarget; }
  void setPlanTarget(const PlanTarget& target);
  /// How the next run is measured: the options that were set, on the run target, with the pass.
  RunSpec runSpec() const;
  /// Target and pass are set by themselves.
  void setRunOptions(const RunSpec& options);
  /// The safetensors file that runs take parameters and inputs from; empty: they are drawn from the seed.
  const QString& tensorsFile() const { return m_tensorsFile; }
  void setTensorsFile(const QString& path);
  /// Writes the parameters that a run would start with.
  /// Errors: the pipeline has errors, the tensors file does not fit it, the file cannot be written.
  Result<void> saveParameters(const QString& path) const;
  /// Writes the last run as a run file, for `fuseline run --measured` and for this window elsewhere.
  /// Errors: nothing was measured yet, the file cannot be written.
  Result<void> saveRun(const QString& path) const;
  /// Writes the last run in a format of other programs, beside the baselines where the format can. Errors: as
  /// saveRun(), and those of the format.
  Result<void> exportRun(const Exporter& exporter, const QString& path) const;
  /// The pipeline in a format of other programs, as it is planned, with the weights that a run would take. Errors:
  /// those of the pipeline, of the tensors file, and of the format.
  Result<PipelineText> exportPipeline(const PipelineExporter& exporter) const;
  /// Times both plans. One that is stopped early does not replace a complete one of the same pipeline.
  void run();
  /// Runs interleaved with another pipeline, whose run then is the reference of the baselines.
  void runBeside(const PipelineDocument& base, const QString& name);
  /// Compares both plans with float32, tensor by tensor.
  void measureNumerics();
  /// Runs the plan once and takes these tensors, or all of these ops. Errors come with runFailed().
  void captureTensors(const std::vector<std::string>& tensors, PlanChoice plan);
  void cancelRun();
  bool isRunning() const { return m_worker.isRunning() || m_isSweeping; }
  /// Request that run() sends to the worker.
  RunRequest runRequest(RunPurpose purpose = RunPurpose::Times) const;
  /// While the worker measures the points of a sweep, its results are the sweep's alone, and nothing else is run.
  void setSweeping(bool isSweeping);
  bool isSweeping() const { return m_isSweeping; }
  const std::optional<LastRun>& lastRun() const { return m_lastRun; }
  /// The last run, if it was opened from a file.
  const LastRun* openedRun() const { return m_lastRun && m_lastRun->origin ? &*m_lastRun : nullptr; }
  /// The file that the last run was opened from, or is kept in. Empty: none is known.
  const QString& runFile() const { return m_runFile; }
  void setRunFile(const QString& path) { m_runFile = path; }
  /// Sets the user's note on the last run, or on one of its steps. The keeper of run files saves it there.
  void setRunNote(const std::string& note);
  void setRowNote(const RowNote& note);
  void setStretchNote(const StretchNote& note);
  /// The runs that others are set beside. They stay when the pipeline changes, and when another one is opened.
  Baselines& baselines() const { return *m_baselines; }
  const std::optional<LastNumerics>& lastNumerics() const { return m_lastNumerics; }
  const std::optional<LastCapture>& lastCapture() const { return m_lastCapture; }
  WorkerClient& worker() { return m_worker; }
  const WorkerClient& worker() const { return m_worker; }

 Q_SIGNALS:
  void documentChanged();
  /// Another document was opened.
  void documentReplaced();
  void analysisChanged(const std::shared_ptr<const Analysis>& analysis);
  void selectionChanged();
  void editRefused(const QString& sentence);
  void passChanged();
  void runTargetChanged();
  void tensorsFileChanged();
  /// The source of tensors changed (options or file), so numerics and captured tensors may belong to another source.
  void tensorSourceChanged();
  void runStarted();
  /// Another run, or none, will be the last one: what is being typed about this one is still about this one.
  void lastRunLeaving();
  void runProgress(const QString& stage, int done, int total);
  /// A run has ended; lastRun() is its result, or that of a better one.
  void runFinished();
  /// After runFinished(), if the result is lastRun() now.
  void measured();
  /// isRunning() may be another.
  void runningChanged();
  void rowNotesChanged();
  void stretchNotesChanged();
  void baselinesChanged();
  void numericsFinished();
  void tensorsCaptured();
  void runFailed(const QString& sentence);
  /// A run of a closed document has ended: it was canceled with the document, and its result is dropped.
  void runDropped();
  /// Somebody wants to see the first error.
  void problemsWanted();
  /// Whatever runs shall stop.
  void cancelWanted();
  void sweepingChanged();

 private:
  struct Opened {
    PipelineDocument document;
    std::vector<Diagnostic> problems = {};
    std::vector<std::string> notes = {};
    QString path = {};
    QString name = {};
    std::optional<LastRun> run = {};
    bool isUnsaved = false;
    bool isPartlyRead = false;  // as a program knew that had read the file
  };
  void replaceDocument(Opened opened);
  void showRun(const QString& path, ReadFile::Run opened);
  void takeRun(std::optional<LastRun> run);
  void takeGains(const LastRun& run);
  RunSpec plannedSettings() const;
  /// Device of the run target, or of an opened run.
  RunTarget plannedDevice() const;
  void refreshCapabilities();
  void compareWithPlan();
  void noteChange();
  AnalysisOptions analysisOptions() const;
  /// Those of the tensors file; none without one.
  Result<NamedTensors> givenTensors() const;
  std::function<AnalysisOptions(const PipelineDocument&)> planningOptions() const;
  void startAnalysis();
  void planAnew();
  void acceptAnalysis(quint64 generation, std::shared_ptr<const Analysis> analysis);
  void dropVanishedSelection();
  void start(RunRequest request);
  void finishRun(const RunRecord& record, const RunRecord* beside);
  void pinBeside(const RunRecord& beside);
  void showOwnRun();
  void finishNumerics(const NumericsReport& report);
  void finishCapture(const std::vector<TensorSummary>& tensors);
  void refreshStaleness();
  TensorSource tensorSource() const;

  History m_history;
  QString m_path;
  QString m_name;
  std::vector<Diagnostic> m_fileProblems;
  bool m_isPartlyRead = false;
  QStringList m_fileNotes;
  std::function<Capabilities(const std::string& deviceId)> m_capabilitiesOf;
  LayOutGraph m_layOut;
  Capabilities m_capabilities;  // of the planned device
  std::shared_ptr<const Analysis> m_analysis = std::make_shared<const Analysis>();
  // Counts changes of the document; a result with an older number is dropped.
  quint64 m_generation = 0;
  quint64 m_analysedGeneration = 0;
  std::uint64_t m_numPlannings = 0;              // with other settings each
  std::unique_ptr<LiveAnalysis> m_liveAnalysis;  // used by the thread of m_pool alone
  QSet<QString> m_selection;
  QString m_selectedRule;
  PassKind m_pass = PassKind::Training;
  RunTarget m_runTarget;
  PlanTarget m_planTarget;
  RunSpec m_runOptions;
  QString m_tensorsFile;
  std::optional<LastRun> m_lastRun;
  QString m_runFile;
  Baselines* m_baselines;
  std::shared_ptr<const RunGains> m_gains = std::make_shared<const RunGains>();
  std::optional<LastNumerics> m_lastNumerics;
  std::optional<LastCapture> m_lastCapture;
  QTemporaryDir m_captureFolder;
  int m_numCaptures = 0;
  PlanChoice m_capturedPlan = PlanChoice::Fused;
  QString m_captureFile;         // that the worker writes
  LastRun m_pendingRun;          // what the worker is running
  bool m_isRunOrphaned = false;  // another document was opened since it began
  bool m_isSweeping = false;
  WorkerClient m_worker;
  QThreadPool m_pool;
};

}  // namespace fuseline::ui
