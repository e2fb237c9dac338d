// Session: what is open: the pipeline, its plan, how it is run, and what runs measured. Each is a part of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/exporter.h"
#include "ui/session/last_results.h"
#include "ui/session/live_plan.h"
#include "ui/session/open_pipeline.h"
#include "ui/session/read_file.h"
#include "ui/session/run_setup.h"
#include "ui/session/runner.h"
#include "ui/session/selection.h"

#include <QObject>
#include <QString>
#include <QStringList>

#include <optional>
#include <string>

namespace fuseline::ui {

class Baselines;
class LiveAnalysis;

/// Settings from the hosting program.
struct SessionSettings {
  QStringList workerCommand;
  CapabilitiesOf capabilitiesOf = {};
  /// Layout for exported drawings, on this thread. Empty: exports have no drawings.
  LayOutGraph layOut = {};
};

/// Owns the parts, and opens documents in all of them at once. Each part follows those before it.
class Session : public QObject {
  Q_OBJECT

 public:
  explicit Session(SessionSettings settings, QObject* parent = nullptr);

  /// With which others like it can be made.
  SessionSettings settings() const { return {m_runner.worker().command(), m_plan.capabilitiesOf(), m_layOut}; }
  OpenPipeline& pipeline() { return m_pipeline; }
  const OpenPipeline& pipeline() const { return m_pipeline; }
  Selection& selection() { return m_selection; }
  const Selection& selection() const { return m_selection; }
  RunSetup& setup() { return m_setup; }
  const RunSetup& setup() const { return m_setup; }
  LastResults& results() { return m_results; }
  const LastResults& results() const { return m_results; }
  /// The runs that others are set beside. They stay when the pipeline changes, and when another one is opened.
  Baselines& baselines() const { return *m_baselines; }
  LivePlan& plan() { return m_plan; }
  const LivePlan& plan() const { return m_plan; }
  Runner& runner() { return m_runner; }
  const Runner& runner() const { return m_runner; }

  /// A document from text that is in no file: a template. Problems become those of the pipeline.
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
  /// Gives an op, an input or an output another id, and selects it again; a refusal is emitted as a sentence.
  bool rename(const QString& id, const QString& newId);

 Q_SIGNALS:
  /// Somebody wants to see the first error.
  void problemsWanted();

 private:
  void replace(ReadPipeline read, std::optional<LastRun> run = {});
  void showRun(const QString& path, ReadFile::Run opened);

  LayOutGraph m_layOut;
  OpenPipeline m_pipeline;
  Selection m_selection;
  RunSetup m_setup;
  LastResults m_results;
  Baselines* m_baselines;
  LivePlan m_plan;
  Runner m_runner;
};

}  // namespace fuseline::ui
