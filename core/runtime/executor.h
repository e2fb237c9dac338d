// Executor: binds a plan to a backend and runs it. Memory is one block, laid out by the plan.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"
#include "core/runtime/launcher.h"
#include "core/runtime/plan_memory.h"
#include "core/runtime/step_name.h"
#include "core/runtime/timed_plan.h"
#include "core/tensor/tensor.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

struct ExecutorOptions {
  /// The requested clock. A device that cannot trace falls back to events, one without a clock of its own to the
  /// host's.
  StepClock clock = StepClock::Events;
  /// Whether the launches of a plan are recorded where the device can, and replayed.
  bool replaysLaunches = true;
  /// For the plan of one of several ranks, which then all run together. Outlives the executor.
  Communicator* communicator = nullptr;
};

class Executor final : public TimedPlan {
 public:
  /// Compiles every step, allocates the plan's memory and uploads the bindings: a tensor for every input, parameter
  /// and output gradient of the plan, by name. `graph` and `plan` must outlive the executor.
  /// Results live in `buffers` where there is one for them, which must outlive the executor; such a tensor shares it
  /// with all that is a view of it, as it would share the plan's own memory.
  /// Errors: a step without a kernel, a missing or misshapen binding, no memory, a buffer that no result fits; each
  /// with the name.
  static Result<std::unique_ptr<Executor>> create(std::shared_ptr<Backend> backend, const Graph& graph,
                                                  const Plan& plan, const NamedTensors& bindings,
                                                  std::span<const ResultBuffer> buffers = {},
                                                  const ExecutorOptions& options = {});

  /// Runs all steps in order and waits for the device. Stops between steps when `cancel` asks for it. The call after
  /// the first run that completed records the launches where the device can (the first may still load code and read
  /// sizes), and from then on they are replayed. Until one has completed, each step is waited for: the fault of a
  /// device is then of that step. Errors (RunFailed): what a kernel threw, with the step's name.
  Result<RunOutcome> run(std::stop_token cancel = {}) override;
  /// The same, and every step is timed. Unless it is traced, each is launched by itself; where run() replays, the
  /// device waits until the host is ahead, as otherwise short steps would be as long as their launches.
  Result<RunOutcome> runObserved(const StepObserver& observer, std::stop_token cancel = {}) override;

  /// The clock that times steps here.
  StepClock clock() const override;
  /// Does the device work beside the host, so that launching is one thing and running another?
  bool hasDeviceClock() const override { return m_totalClock != nullptr; }
  /// Why it is not what was wanted; mostly empty. A trace may be given up in any observed run.
  const std::string& clockNote() const override { return m_clockNote; }
  /// The parameters and the optimizer's state become what they were before the first run. bindings: those of create().
  /// Does nothing if the plan has no optimizer.
  Result<void> restoreParameters(const NamedTensors& bindings) { return m_memory.restoreParameters(bindings); }
  /// From here on steps are timed by events, and clockNote() is the reason. Does nothing without a trace.
  void giveUpTrace(const std::string& reason) override;
  /// Duration of the last run(), from the first launch until the device finished, without recording. Replayed launches
  /// begin when the host has enqueued all of them. Measured on the device's clock where there is one; the first run,
  /// which waits for each step, on the host's. Undefined after a cancelled run.
  double runNs() const override { return m_runNs; }
  /// Host time of the last run() until everything was launched.
  double launchNs() const override { return m_launcher.launchNs(); }
  /// Duration of the last runObserved(), as runNs(), without the cost of starting and reading a trace.
  double observedNs() const override { return m_observedNs; }
  /// All activities traced in the last runObserved(); without a trace, the transfers on the device's clock.
  const std::vector<DeviceActivity>& activities() const override { return m_activities; }
  /// When the host launched each step in the last runObserved(), since the run began, or all at once (step -1). Empty
  /// if launches are synchronous, and if the device waited until the host was ahead.
  const std::vector<TimelineSpan>& launches() const override { return m_launcher.notes(); }
  /// How run() launches, for people: "captured and replayed", or "step by step: ..." with the reason. Empty before
  /// the second run, and where the device does not record.
  const std::string& launching() const override { return m_launcher.launching(); }

  /// Device memory of the plan and of its kernels' workspaces.
  std::int64_t memoryBytes() const override;

  /// Kernel::ways of a step in Plan::steps; empty for what is not launched.
  std::vector<std::string> ways(std::size_t step) const override;

  /// Kernel::launches of a step in Plan::steps in the last run; 0 for what is not launched, or has not been yet.
  std::int64_t launches(std::size_t step) const override;

  /// Copies a tensor of the plan to the host. Tensors of the arena are only meaningful if the plan was made with
  /// keepIntermediates. Errors: no tensor of this name (with the nearest one).
  Result<Tensor> read(std::string_view tensorName) const override { return m_memory.read(tensorName); }

  const Plan& plan() const override { return m_plan; }

 private:
  Executor(std::shared_ptr<Backend> backend, const Graph& graph, const Plan& plan, const ExecutorOptions& options);
  Result<void> prepare(const NamedTensors& bindings);
  void makeTrace();
  void makeClock();
  Result<RunOutcome> launchBetweenEnds(const std::stop_token& cancel);
  void getAhead(DeviceClock& clock, double launchNs);
  double tracedNs() const;
  Result<RunOutcome> runTraced(const StepObserver& observer, const std::stop_token& cancel);
  Result<RunOutcome> runOnHostClock(const StepObserver& observer, const std::stop_token& cancel);
  Result<RunOutcome> runOnDeviceClock(const StepObserver& observer, const std::stop_token& cancel);
  Result<RunOutcome> launchBetweenMarks(const std::stop_token& cancel);
  double readMarks(const StepObserver& observer);
  double readTransferMarks(const std::vector<double>& stepStartsNs);
  void noteCollective(std::size_t launch, std::chrono::steady_clock::time_point begin);

  std::shared_ptr<Backend> m_backend;
  const Plan& m_plan;
  ExecutorOptions m_options;
  PlanMemory m_memory;
  Launcher m_launcher;
  std::unique_ptr<DeviceTrace> m_trace;
  std::unique_ptr<DeviceClock> m_clock;       // of steps
  std::unique_ptr<DeviceClock> m_totalClock;  // of runs
  std::string m_clockNote;
  double m_runNs = 0.0;
  double m_markedLaunchNs = 0.0;  // of the last run with marks; before the first, what it may be
  double m_observedNs = 0.0;
  std::vector<DeviceActivity> m_activities;
};

}  // namespace fuseline
