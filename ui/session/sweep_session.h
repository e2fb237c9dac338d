// SweepSession: measures the pipeline at one point of a sweep after the other, through the session's worker.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/sweep_result.h"
#include "ui/session/session.h"

#include <QObject>
#include <QString>
#include <QTemporaryDir>
#include <QThreadPool>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace fuseline::ui {

/// The figures of a sweep outlive changes of the pipeline, which makes them stale; they go when another pipeline is
/// opened than one of its own runs.
class SweepSession : public QObject {
  Q_OBJECT

 public:
  explicit SweepSession(Session& session, QObject* parent = nullptr);
  ~SweepSession() override;

  /// Measures the pipeline as it is now. An empty recipe is that of the pipeline. Nothing happens while anything runs.
  void start(ShapeSweep sweep);
  /// Stops the sweep and keeps its results so far.
  void stop();
  bool isRunning() const { return m_isRunning; }

  /// Result of the last sweep, possibly partial; nullopt if there was none.
  const std::optional<SweepResult>& result() const { return m_result; }
  std::size_t numPoints() const { return m_points.size(); }
  bool isPartial() const { return m_result && m_result->rows.size() < numPoints(); }
  /// A sentence why the last one ended before its last point; empty: it did not.
  const QString& ended() const { return m_ended; }
  /// "3 of 12: M=512 MXFP8BlockScaling"; empty while nothing is measured.
  QString progress() const;
  /// Whether the pipeline has changed since the sweep measured it, apart from the values that the sweep sets.
  bool isStale() const;

  /// Errors: there is no result, the file cannot be written.
  Result<void> saveCsv(const QString& path) const;
  /// Writes the run of a measured row into a file that lasts as long as this object. Errors: it cannot be written.
  Result<QString> writeRun(std::size_t row) const;
  /// The command line that measures the same. Errors: the pipeline is in no file, or the command line has no word for
  /// one of the recipes.
  Result<std::string> command() const;

 Q_SIGNALS:
  /// Any of the above, but that a change of the pipeline makes it stale.
  void changed();
  void stalenessChanged();

 private:
  const SweepPoint& point() const { return m_points[m_result->rows.size()]; }
  void measureNext();
  void measure(const RunSpec& settings);
  void checkAndMeasure(RunSpec settings);
  void take(const RunRecord& record);
  void fail(const QString& sentence);
  void refuse(std::string reason);
  void goOn();
  void end(const QString& why);
  void forget();
  void followReplacement();
  bool isOwnDocument() const;
  PipelineDocument withoutAxes(PipelineDocument document) const;

  Session& m_session;
  QTemporaryDir m_folder;  // of runs that were opened
  std::optional<SweepResult> m_result;
  std::vector<SweepPoint> m_points;
  RunRequest m_request;         // but for the point
  PipelineDocument m_document;  // that is measured
  QString m_path;               // its file
  QString m_ended;
  bool m_isRunning = false;
  bool m_isStopping = false;
  bool m_isOrphaned = false;  // another document was opened since it began
  QThreadPool m_pool;
};

}  // namespace fuseline::ui
