// The launches of a plan: each step as a kernel with its operands, one by one or captured and replayed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/collective/communicator.h"
#include "core/profile/run_record.h"
#include "core/runtime/backend.h"
#include "core/runtime/plan_memory.h"
#include "core/tensor/tensor.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace fuseline {

enum class RunOutcome { Completed, Cancelled };

/// The tensors that a communication step exchanges. addresses: by operand; empty: sizes only.
std::vector<CollectivePart> collectiveParts(const Plan& plan, const Step& step, std::span<std::byte* const> addresses);

class Launcher {
 public:
  /// A step that is launched, with its operands resolved.
  struct Launch {
    std::size_t step = 0;
    std::unique_ptr<Kernel> kernel;
    std::vector<std::byte*> operands;
  };

  /// All outlive it.
  Launcher(Backend& backend, const Graph& graph, const Plan& plan, bool replays, Communicator* communicator = nullptr)
      : m_backend(backend), m_graph(graph), m_plan(plan), m_replays(replays), m_communicator(communicator) {}

  /// Compiles every step. Errors: a step without a kernel, with its name.
  Result<void> compile();
  /// Memory that the kernels need in addition to that of the plan.
  std::size_t workspaceBytes() const { return m_workspaceBytes; }
  Result<void> allocateWorkspace();
  /// Resolves operands and makes transfers. Errors: what a device says.
  Result<void> bind(const PlanMemory& memory);
  /// Launches what runs once only. bindings: the parameters that have no memory of the plan are taken from them, one
  /// step at a time. Errors: as launch(), and no memory.
  Result<void> runOnce(const NamedTensors& bindings);

  /// Launches belong to the steps of this trace from here on; nullptr: to none.
  void setTrace(DeviceTrace* trace) { m_trace = trace; }

  const std::vector<Launch>& all() const { return m_launches; }
  /// nullptr for a step that is not launched.
  const Launch* find(std::size_t step) const;
  const Step& stepOf(std::size_t launch) const { return m_plan.steps[m_launches[launch].step]; }
  /// Else a trace has nothing to see.
  bool writesAnything() const;

  /// Errors (RunFailed): what a kernel threw, with the step's name.
  Result<void> launch(std::size_t index);
  /// The same, and waits for the device: a fault is then of this step.
  Result<void> launchAlone(std::size_t index);
  /// Launches all steps, or the recording; stops between steps when `cancel` asks for it.
  Result<RunOutcome> launchAll(const std::stop_token& cancel);
  /// The same, and waits for the device.
  Result<RunOutcome> launchAndWait(const std::stop_token& cancel);
  /// Waits, because launched kernels may still write to memory of the caller.
  Result<RunOutcome> cancelled();
  Result<void> wait();
  /// From here on a fault of the device is not looked for after each step.
  void trustSteps() { m_trustsSteps = true; }
  bool trustsSteps() const { return m_trustsSteps; }

  /// Records the launches where the device can, unless that was tried before.
  void record();
  bool isRecorded() const { return m_recording != nullptr; }
  /// Is the host left out of times? Where launches are replayed, and where they are too few to be: such a plan is
  /// compared with others that are replayed.
  bool isHostApart() const;
  /// "captured and replayed", or "step by step: ..." with the reason; empty where nobody tried.
  const std::string& launching() const { return m_launching; }
  /// The host's time until all was launched, the last time.
  double launchNs() const { return m_launchNs; }

  /// Launches are noted from here until endNotes().
  void beginNotes();
  void endNotes() { m_notesSince.reset(); }
  void clearNotes() { m_notes.clear(); }
  std::chrono::steady_clock::time_point notesSince() const { return *m_notesSince; }
  /// When the host launched each step, or all at once (step -1).
  const std::vector<TimelineSpan>& notes() const { return m_notes; }

 private:
  void makeTransfers();
  void makeCollectives();
  void agreeOnRecording();
  Result<void> launchEach();
  Result<void> launchFrom(Launch& item, std::size_t index, const NamedTensors& bindings);
  Result<RunOutcome> launchSteps(const std::stop_token& cancel);

  Backend& m_backend;
  const Graph& m_graph;
  const Plan& m_plan;
  bool m_replays;
  Communicator* m_communicator;
  std::vector<Launch> m_launches;
  std::size_t m_workspaceBytes = 0;
  std::unique_ptr<DeviceMemory> m_workspace;
  DeviceTrace* m_trace = nullptr;
  std::unique_ptr<RecordedLaunches> m_recording;
  std::string m_launching;
  bool m_trustsSteps = false;
  bool m_hasTriedToRecord = false;
  double m_launchNs = 0.0;
  std::optional<std::chrono::steady_clock::time_point> m_notesSince;  // nothing: launches are not noted
  std::vector<TimelineSpan> m_notes;
};

}  // namespace fuseline
