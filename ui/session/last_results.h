// LastResults: the last run, numerics and captured tensors, and whether the pipeline now means something else.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/analysis.h"
#include "core/profile/numerics.h"
#include "core/profile/run_record.h"
#include "core/profile/tensor_statistics.h"
#include "ui/session/captured_file.h"
#include "ui/session/open_pipeline.h"
#include "ui/session/run_setup.h"

#include <QObject>
#include <QString>
#include <QStringList>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline::ui {

/// Origin of an opened run, in addition to its record.
struct RunOrigin {
  QString file;
  /// Settings that stand in the document because the run had them: "M = 8192".
  QStringList changes;
  /// Steps that were measured and are not in the plan as it is now, or the reverse. Known once the plan is.
  QStringList differingSteps;
};

/// A run, what it ran, and whether the pipeline now means something else. Moving nodes does not make it stale.
struct LastRun {
  RunRecord record;
  PipelineDocument document;
  ExecutionMode pass = ExecutionMode::Training;
  std::string device;
  TensorSource source = {};
  std::optional<RunOrigin> origin = {};  // nothing: it was run here
  bool isStale = false;
};

/// Numerics of a run, and the pipeline that ran.
struct LastNumerics {
  NumericsReport report;
  PipelineDocument document;
  ExecutionMode pass = ExecutionMode::Training;
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
  ExecutionMode pass = ExecutionMode::Training;
  std::string device;
  TensorSource source = {};
  bool isStale = false;

  /// nullptr: it was not captured.
  const TensorSummary* find(std::string_view tensor) const;
};

class LastResults : public QObject {
  Q_OBJECT

 public:
  LastResults(const OpenPipeline& pipeline, const RunSetup& setup);

  const std::optional<LastRun>& lastRun() const { return m_run; }
  /// The last run, if it was opened from a file.
  const LastRun* openedRun() const { return m_run && m_run->origin ? &*m_run : nullptr; }
  /// The file that the last run was opened from, or is kept in. Empty: none is known.
  const QString& runFile() const { return m_runFile; }
  void setRunFile(const QString& path) { m_runFile = path; }
  const std::optional<LastNumerics>& lastNumerics() const { return m_numerics; }
  const std::optional<LastCapture>& lastCapture() const { return m_capture; }

  /// Sets the user's note on the last run, or on one of its steps. The keeper of run files saves it there.
  void setRunNote(const std::string& note);
  void setRowNote(const RowNote& note);
  void setStretchNote(const StretchNote& note);
  /// Steps of an opened run that the plan as it is now has not, or the reverse.
  void setDifferingSteps(const Analysis& analysis);

  /// Another document is opened, with the run it came with, if any. leave() comes before.
  void startWith(std::optional<LastRun> run);
  void leave();
  /// A run that ended here.
  void takeRun(const LastRun& run);
  void takeNumerics(LastNumerics numerics);
  void takeCapture(LastCapture capture);

 Q_SIGNALS:
  /// Another run, or none, will be the last one: what is being typed about this one is still about this one.
  void leaving();
  void runTaken(const LastRun& run);
  void rowNotesChanged();
  void stretchNotesChanged();

 private:
  void refreshStaleness();
  void keepNumerics();

  const OpenPipeline& m_pipeline;
  const RunSetup& m_setup;
  std::optional<LastRun> m_run;
  QString m_runFile;
  std::optional<LastNumerics> m_numerics;
  std::optional<LastCapture> m_capture;
};

}  // namespace fuseline::ui
