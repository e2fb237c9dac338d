// TimedPlan: a plan that is ready to run, on one rank or on several, as it is measured.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_record.h"
#include "core/runtime/backend.h"
#include "core/runtime/launcher.h"
#include "core/tensor/tensor.h"

#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// Called for each step that is launched (not for views) with its index in Plan::steps, when it began since the run
/// did, and its time: on the device's clock, or on the host's, the synchronization after it included.
using StepObserver = std::function<void(std::size_t step, double startNs, double durationNs)>;

/// The clock of a step.
enum class StepClock {
  Host,    // the host's clock, with a wait for the device after every step
  Events,  // the device's clock between steps, without waiting
  Trace,   // each kernel by itself, in the launches as they are: recorded ones, too
  None     // nothing: runs are timed from end to end only
};

class TimedPlan {
 public:
  virtual ~TimedPlan() = default;

  /// The decision that holds: where ranks are processes, that of rank 0. Errors (RunFailed): a rank has failed.
  virtual Result<bool> agree(bool decision) { return decision; }
  /// Runs all steps in order and waits for the device. Errors (RunFailed): what a kernel threw, with the step's name.
  virtual Result<RunOutcome> run(std::stop_token cancel = {}) = 0;
  /// The same, and every step is timed.
  virtual Result<RunOutcome> runObserved(const StepObserver& observer, std::stop_token cancel = {}) = 0;

  /// The clock in use.
  virtual StepClock clock() const = 0;
  /// Does the device work beside the host, so that launching is one thing and running another?
  virtual bool hasDeviceClock() const = 0;
  /// Why the clock is not what was wanted; mostly empty.
  virtual const std::string& clockNote() const = 0;
  /// From here on steps are timed by events, and clockNote() is the reason. Does nothing without a trace.
  virtual void giveUpTrace(const std::string& reason) = 0;

  /// Time of the last run(), from the first launch until the device had ended.
  virtual double runNs() const = 0;
  /// The host's time in the last run() until all was launched.
  virtual double launchNs() const = 0;
  /// The same as runNs() for the last runObserved().
  virtual double observedNs() const = 0;
  /// All that a trace saw in the last runObserved().
  virtual const std::vector<DeviceActivity>& activities() const = 0;
  /// When the host launched each step of the last runObserved(), since the run began.
  virtual const std::vector<TimelineSpan>& launches() const = 0;
  /// The steps of the last runObserved() on each of several ranks, since they began it together; of one rank none.
  virtual std::vector<TimelineSpan> rankSpans() const { return {}; }
  /// How run() launches, for people. Empty before the second run, and where the device does not record.
  virtual const std::string& launching() const = 0;

  /// Device memory of the plan and its kernels; on several ranks, of all together.
  virtual std::int64_t memoryBytes() const = 0;
  /// Kernel::ways of a step in Plan::steps; empty for what is not launched.
  virtual std::vector<std::string> ways(std::size_t step) const = 0;
  /// Kernel::launches of a step in Plan::steps in the last run; 0 for what is not launched, or has not been yet.
  virtual std::int64_t launches(std::size_t step) const = 0;
  /// Copies a tensor of the plan to the host; on several ranks the whole tensor. Errors: no tensor of this name.
  virtual Result<Tensor> read(std::string_view tensorName) const = 0;

  virtual const Plan& plan() const = 0;
};

}  // namespace fuseline
