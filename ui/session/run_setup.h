// RunSetup: how the next run and the plan are wanted: pass, device, options, and where tensors come from.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"
#include "core/runtime/bindings.h"

#include <QObject>
#include <QString>

#include <cstdint>
#include <optional>
#include <string>

namespace fuseline::ui {

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

  bool operator==(const PlanTarget&) const = default;
};

/// Where the tensors of a run come from.
struct TensorSource {
  std::uint64_t seed = 0;
  QString file;  // empty: all are drawn
  bool operator==(const TensorSource&) const = default;
};

class RunSetup : public QObject {
  Q_OBJECT

 public:
  ExecutionMode pass() const { return m_pass; }
  void setPass(ExecutionMode pass);
  const RunTarget& runTarget() const { return m_runTarget; }
  void setRunTarget(const RunTarget& target);
  const PlanTarget& planTarget() const { return m_planTarget; }
  void setPlanTarget(const PlanTarget& target);
  /// Tensor-parallel ranks that runs have and plans are made for.
  int ranks() const { return m_options.ranks; }
  /// From 1 to mostRanks(); else it does nothing.
  void setRanks(int ranks);
  static int mostRanks();
  /// The optimizer of a training pass. Nothing: no optimizer, or fields of it that the run will refuse.
  std::optional<AdamW> optimizer() const;
  /// As in an opened run.
  void takeOptimizer(const RunSpec& settings);
  /// How the next run is measured: the options that were set, on the run target, with the pass.
  RunSpec spec() const;
  /// Target and pass are set by themselves.
  void setOptions(const RunSpec& options);
  /// The safetensors file that runs take parameters and inputs from; empty: they are drawn from the seed.
  const QString& tensorsFile() const { return m_tensorsFile; }
  void setTensorsFile(const QString& path);
  TensorSource tensorSource() const { return {.seed = m_options.seed, .file = m_tensorsFile}; }

 Q_SIGNALS:
  void passChanged();
  void runTargetChanged();
  /// Before runTargetChanged(), if it is another device.
  void deviceChanged();
  void planTargetChanged();
  void ranksChanged();
  void optimizerChanged();
  void tensorsFileChanged();
  /// The source of tensors changed (options or file), so numerics and captured tensors may belong to another source.
  void tensorSourceChanged();

 private:
  ExecutionMode m_pass = ExecutionMode::Training;
  RunTarget m_runTarget;
  PlanTarget m_planTarget;
  RunSpec m_options;
  QString m_tensorsFile;
};

}  // namespace fuseline::ui
