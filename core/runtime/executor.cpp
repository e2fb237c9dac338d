// Compiles a plan's steps, lays out its memory and runs it.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/executor.h"

#include "core/runtime/activity_samples.h"
#include "core/support/text.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

using Clock = std::chrono::steady_clock;

double nanosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

Error stepError(const Step& step, std::string_view problem) {
  return {fmt::format("{}: {}", describe(step), problem), ErrorKind::RunFailed};
}

/// Backends throw when a device fails while they wait for it or copy; their messages name the device and the step.
template <class Action>
Result<void> attempt(Action action) {
  try {
    action();
  } catch (const std::exception& problem) {
    return Error{problem.what(), ErrorKind::RunFailed};
  }
  return {};
}

Result<void> wait(Backend& backend) {
  return attempt([&] { backend.synchronize(); });
}

std::vector<std::string> tensorNames(const Plan& plan) {
  std::vector<std::string> names;
  for (const PlanTensor& tensor : plan.tensors) names.push_back(tensor.name);
  return names;
}

Error unknownTensor(std::string_view name, const Plan& plan) {
  return {fmt::format("{}: the plan has no tensor of this name; the nearest is \"{}\".", name,
                      nearest(name, tensorNames(plan)))};
}

/// Moments of the clock of runs.
enum End : std::size_t { kBegin, kEnd, kEndOfTransfers, kNumEnds };

/// How long a device is kept busy, in nanoseconds: longer than the launches that follow took the last time.
constexpr double kHeadStartShare = 1.5;
constexpr double kLeastHeadStartNs = 20e3;
/// A launch with its mark: what it may take before there was a last time, and the most that is believed, as a host that
/// finds the queue full waits for the device.
constexpr double kAssumedLaunchNs = 10e3;
constexpr double kMostLaunchNs = 30e3;

/// Fewer launches are not worth a recording: a replay is a launch, too.
constexpr std::size_t kFewestRecorded = 3;

/// Kernels may rely on the alignment that a plan gives all of its tensors.
bool isAligned(const std::byte* data) {
  constexpr std::uintptr_t kAlignment = 64;
  return reinterpret_cast<std::uintptr_t>(data) % kAlignment == 0;
}

Result<void> checkBuffer(const PlanTensor& wanted, const ResultBuffer& buffer) {
  if (!isResult(wanted.role))
    return Error{
        fmt::format("{}: a buffer was given for it, but it is no result of the pipeline; buffers are for "
                    "outputs and for gradients of inputs and parameters.",
                    wanted.name)};
  if (buffer.spec != wanted.spec)
    return Error{fmt::format("{}: the buffer given is {}, but the result is {}.", wanted.name, toString(buffer.spec),
                             toString(wanted.spec))};
  if (wanted.spec.bytes() > 0 && (!buffer.data || !isAligned(buffer.data)))
    return Error{fmt::format("{}: the buffer given must begin at a multiple of 64 bytes, but begins at address {}.",
                             wanted.name, fmt::ptr(buffer.data))};
  return {};
}

/// What is launched in its lifetime belongs to a step.
class StepScope {
 public:
  StepScope(DeviceTrace* trace, std::size_t step) : m_trace(trace) {
    if (m_trace) m_trace->beginStep(step);
  }
  ~StepScope() {
    if (m_trace) m_trace->endStep();
  }
  StepScope(const StepScope&) = delete;
  StepScope& operator=(const StepScope&) = delete;

 private:
  DeviceTrace* m_trace;
};

/// Notes when the host was at something; where `since` is nothing, nobody wants to know.
class HostSpan {
 public:
  HostSpan(std::vector<TimelineSpan>& spans, const std::optional<Clock::time_point>& since, int step)
      : m_spans(spans), m_since(since), m_span{.step = step, .startNs = now()} {}
  ~HostSpan() {
    m_span.durationNs = now() - m_span.startNs;
    if (m_since) m_spans.push_back(m_span);
  }
  HostSpan(const HostSpan&) = delete;
  HostSpan& operator=(const HostSpan&) = delete;

 private:
  double now() const { return m_since ? nanosecondsSince(*m_since) : 0.0; }

  std::vector<TimelineSpan>& m_spans;
  std::optional<Clock::time_point> m_since;
  TimelineSpan m_span;
};

/// Where all memory is the host's.
class HostTransfer final : public Transfer {
 public:
  HostTransfer(std::span<std::byte> to, const std::byte* from) : m_to(to), m_from(from) {}
  void begin() override { std::memcpy(m_to.data(), m_from, m_to.size()); }
  void end() override {}

 private:
  std::span<std::byte> m_to;
  const std::byte* m_from;
};

/// One of the two steps of a copy.
class TransferKernel final : public Kernel {
 public:
  TransferKernel(std::shared_ptr<Transfer> transfer, bool isEnd) : m_transfer(std::move(transfer)), m_isEnd(isEnd) {}
  void run(std::span<std::byte* const>, std::byte*) override { m_isEnd ? m_transfer->end() : m_transfer->begin(); }
  std::int64_t launches() const override { return m_isEnd ? 0 : 1; }

 private:
  std::shared_ptr<Transfer> m_transfer;
  bool m_isEnd;
};

bool beginsTransfer(const Step& step) { return step.transfer && !step.transfer->isWait(); }

Result<void> checkBinding(const PlanTensor& wanted, const Tensor* given) {
  if (!given)
    return Error{fmt::format("{}: no tensor was given for it; {} is expected.", wanted.name, toString(wanted.spec))};
  if (given->spec != wanted.spec)
    return Error{fmt::format("{}: the tensor given is {}, but the pipeline needs {}.", wanted.name,
                             toString(given->spec), toString(wanted.spec))};
  return {};
}

}  // namespace

bool isResult(TensorRole role) {
  return role == TensorRole::Output || role == TensorRole::InputGradient || role == TensorRole::ParameterGradient ||
         role == TensorRole::MainGradient;
}

bool isBound(TensorRole role) {
  return role == TensorRole::Input || role == TensorRole::Parameter || role == TensorRole::OutputGradient ||
         role == TensorRole::MainGradient || role == TensorRole::QuantizerState;
}

std::string describe(const Step& step) { return rangeName(step.name, step.kernel, phaseName(step.phase), ""); }

std::string firstWritten(const Plan& plan, const Step& step) {
  const auto isWritten = [](const StepOperand& operand) { return operand.access != OperandAccess::Read; };
  const auto written = std::ranges::find_if(step.operands, isWritten);
  return written == step.operands.end() ? std::string() : toString(plan.spec(*written));
}

std::string rangeName(const Plan& plan, const Step& step) {
  return rangeName(step.name, step.kernel, phaseName(step.phase), firstWritten(plan, step));
}

Capabilities capabilitiesOf(std::shared_ptr<const Backend> backend) {
  return [backend = std::move(backend)](const KernelQuery& query) { return backend->supports(query); };
}

Verdict Backend::multiplies(const Recipe& recipe) {
  const std::optional<ComputeCapability> capability = parseCapability(device().architecture);
  return capability ? fuseline::supports(recipe, *capability) : Verdict::yes();
}

std::unique_ptr<Transfer> Backend::makeTransfer(std::span<std::byte> to, const std::byte* from, TransferDirection) {
  return std::make_unique<HostTransfer>(to, from);
}

Capabilities BackendRegistry::capabilities(std::string_view deviceId) const {
  Result<std::shared_ptr<Backend>> backend = open(deviceId);
  return backend ? capabilitiesOf(std::move(*backend)) : Capabilities();
}

Executor::Executor(std::shared_ptr<Backend> backend, const Graph& graph, const Plan& plan,
                   const ExecutorOptions& options)
    : m_backend(std::move(backend)), m_graph(graph), m_plan(plan), m_options(options) {}

Result<std::unique_ptr<Executor>> Executor::create(std::shared_ptr<Backend> backend, const Graph& graph,
                                                   const Plan& plan, const NamedTensors& bindings,
                                                   std::span<const ResultBuffer> buffers,
                                                   const ExecutorOptions& options) {
  std::unique_ptr<Executor> executor(new Executor(std::move(backend), graph, plan, options));
  if (Result<void> placed = executor->place(buffers); !placed) return placed.error();
  executor->makeTrace();  // first: a tracing library wants to see how code is loaded
  if (Result<void> compiled = executor->compile(); !compiled) return compiled.error();
  if (Result<void> allocated = executor->allocate(); !allocated) return allocated.error();
  if (Result<void> uploaded = executor->upload(bindings); !uploaded) return uploaded.error();
  executor->resolveOperands();
  if (Result<void> made = attempt([&] { executor->makeTransfers(); }); !made) return made.error();
  if (Result<void> prepared = executor->runOnce(); !prepared) return prepared.error();
  if (Result<void> made = attempt([&] { executor->makeClock(); }); !made) return made.error();
  return executor;
}

Result<void> Executor::compile() {
  const CompileOptions options{.parametersAreConstant = m_graph.pass() == PassKind::Forward};
  for (std::size_t index = 0; index < m_plan.steps.size(); ++index) {
    const Step& step = m_plan.steps[index];
    if (step.isView) continue;
    if (step.transfer) {
      m_launches.push_back({.step = index});
      continue;
    }
    Result<std::unique_ptr<Kernel>> kernel = m_backend->compile(m_graph, m_plan, step, options);
    if (!kernel) return stepError(step, kernel.error().message);
    m_launches.push_back({.step = index, .kernel = std::move(*kernel)});
  }
  return {};
}

Result<void> Executor::place(std::span<const ResultBuffer> buffers) {
  for (const ResultBuffer& buffer : buffers) {
    const int tensor = m_plan.findTensor(buffer.tensor);
    if (tensor < 0) return unknownTensor(buffer.tensor, m_plan);
    const PlanTensor& wanted = m_plan.tensors[static_cast<std::size_t>(tensor)];
    if (Result<void> fits = checkBuffer(wanted, buffer); !fits) return fits;
    if (!m_given.emplace(wanted.storage, buffer.data).second)
      return Error{fmt::format("{}: a buffer was given for it or for a tensor that is the same memory; give one.",
                               buffer.tensor)};
  }
  return {};
}

/// Of both together, which an allocation of one would not tell.
Result<void> Executor::checkMemory() const {
  const std::optional<std::int64_t> free = m_backend->freeBytes();
  if (!free || memoryBytes() <= *free) return {};
  return Error{fmt::format("{}: the plan wants {} of memory and its kernels {} beside it, and {} are free. Make the "
                           "pipeline smaller, or end what else runs on the device.",
                           m_backend->device().id, formatBytes(m_plan.peakBytes()),
                           formatBytes(static_cast<std::int64_t>(m_workspaceBytes)), formatBytes(*free)),
               ErrorKind::RunFailed};
}

Result<void> Executor::allocate() {
  for (const Launch& launch : m_launches)
    if (launch.kernel) m_workspaceBytes = std::max(m_workspaceBytes, launch.kernel->workspaceBytes());
  if (Result<void> fits = checkMemory(); !fits) return fits;
  const auto planBytes = static_cast<std::size_t>(m_plan.peakBytes());
  for (auto [target, bytes] : {std::pair{&m_memory, planBytes}, std::pair{&m_workspace, m_workspaceBytes}}) {
    Result<std::unique_ptr<DeviceMemory>> memory = m_backend->allocate(std::max<std::size_t>(1, bytes));
    if (!memory) return memory.error();
    *target = std::move(*memory);
  }
  if (m_plan.hostBytes == 0) return {};
  Result<std::unique_ptr<DeviceMemory>> host = m_backend->allocateOnHost(static_cast<std::size_t>(m_plan.hostBytes));
  if (!host) return host.error();
  m_hostMemory = std::move(*host);
  return {};
}

Result<void> Executor::upload(const NamedTensors& bindings) {
  std::unordered_map<std::string_view, const Tensor*> byName;
  for (const auto& [name, tensor] : bindings) byName.emplace(name, &tensor);
  for (std::size_t index = 0; index < m_plan.tensors.size(); ++index) {
    const PlanTensor& wanted = m_plan.tensors[index];
    if (!isBound(wanted.role)) continue;
    const auto found = byName.find(wanted.name);
    const Tensor* given = found == byName.end() ? nullptr : found->second;
    if (Result<void> fits = checkBinding(wanted, given); !fits) return fits;
    std::byte* const target = address(static_cast<int>(index));
    if (!target) continue;
    if (Result<void> copied = attempt([&] { m_backend->upload(target, given->data); }); !copied) return copied;
  }
  return {};
}

void Executor::makeTransfers() {
  std::map<std::pair<int, int>, std::shared_ptr<Transfer>> transfers;  // by what is copied where
  for (Launch& launch : m_launches) {
    const Step& step = m_plan.steps[launch.step];
    if (!step.transfer) continue;
    const StepOperand& to = step.operands[1];
    std::shared_ptr<Transfer>& transfer = transfers[{step.operands[0].tensor, to.tensor}];
    if (!transfer)
      transfer = m_backend->makeTransfer(
          {launch.operands[1], static_cast<std::size_t>(m_plan.spec(to).bytes())}, launch.operands[0],
          step.transfer->isOffload() ? TransferDirection::ToHost : TransferDirection::ToDevice);
    launch.kernel = m_backend->named(std::make_unique<TransferKernel>(transfer, step.transfer->isWait()), m_plan, step);
  }
}

void Executor::resolveOperands() {
  for (Launch& launch : m_launches)
    for (const StepOperand& operand : m_plan.steps[launch.step].operands)
      launch.operands.push_back(address(operand.tensor));
}

std::byte* Executor::address(int tensor) const {
  const PlanTensor& planned = m_plan.tensors[static_cast<std::size_t>(tensor)];
  if (planned.spec.bytes() == 0 || planned.storage < 0) return nullptr;
  if (const auto given = m_given.find(planned.storage); given != m_given.end()) return given->second;
  const Storage& storage = m_plan.storages[static_cast<std::size_t>(planned.storage)];
  return (storage.isOnHost ? m_hostMemory : m_memory)->data() + storage.offset;
}

Result<void> Executor::launch(Launch& launch) {
  const HostSpan noted(m_hostLaunches, m_notesSince, static_cast<int>(launch.step));
  try {
    const StepScope scope(m_trace.get(), launch.step);
    launch.kernel->run(launch.operands, m_workspace->data());
  } catch (const std::exception& problem) {
    return stepError(m_plan.steps[launch.step], problem.what());
  }
  return {};
}

Result<void> Executor::runOnce() {
  const auto runsOnce = [this](const Launch& item) { return m_plan.steps[item.step].runsOnce; };
  for (Launch& item : m_launches)
    if (runsOnce(item))
      if (Result<void> launched = launch(item); !launched) return launched;
  if (Result<void> done = wait(*m_backend); !done) return done;
  std::erase_if(m_launches, runsOnce);
  return {};
}

/// What was launched may still be writing to memory of the caller.
Result<RunOutcome> Executor::cancelled() {
  if (Result<void> done = wait(*m_backend); !done) return done.error();
  return RunOutcome::Cancelled;
}

void Executor::makeTrace() {
  if (m_options.clock != StepClock::Trace) return;
  Result<std::unique_ptr<DeviceTrace>> made = m_backend->makeTrace();
  if (made)
    m_trace = std::move(*made);
  else
    m_clockNote = made.error().message;
}

void Executor::makeClock() {
  // A mark before each launch and after the last one, and one after each transfer.
  if (m_options.clock != StepClock::Host && !m_trace) m_clock = m_backend->makeClock(2 * m_launches.size() + 1);
  if (m_options.clock != StepClock::Host) m_totalClock = m_backend->makeClock(kNumEnds);
  m_markedLaunchNs = kAssumedLaunchNs * static_cast<double>(m_launches.size());
}

StepClock Executor::clock() const {
  if (m_options.clock == StepClock::None) return StepClock::None;
  if (m_trace) return StepClock::Trace;
  return m_clock ? StepClock::Events : StepClock::Host;
}

void Executor::recordLaunches() {
  if (!m_options.replaysLaunches || m_launches.size() < kFewestRecorded) return;
  Result<std::unique_ptr<RecordedLaunches>> recorded = m_backend->record([this]() -> Result<void> {
    for (Launch& item : m_launches)
      if (Result<void> launched = launch(item); !launched) return launched;
    return {};
  });
  if (!recorded)
    m_launching = "step by step: " + recorded.error().message;
  else if (m_recording = std::move(*recorded); m_recording)
    m_launching = "recorded and replayed";
}

Result<RunOutcome> Executor::launchSteps(const std::stop_token& cancel) {
  if (m_recording) {
    if (cancel.stop_requested()) return cancelled();
    const HostSpan noted(m_hostLaunches, m_notesSince, -1);
    if (Result<void> launched = attempt([&] { m_recording->launch(); }); !launched) return launched.error();
    return RunOutcome::Completed;
  }
  for (Launch& item : m_launches) {
    if (cancel.stop_requested()) return cancelled();
    if (Result<void> launched = m_hasCompletedRun ? launch(item) : launchAlone(item); !launched)
      return launched.error();
  }
  return RunOutcome::Completed;
}

Result<RunOutcome> Executor::launchAll(const std::stop_token& cancel) {
  const Clock::time_point start = Clock::now();
  Result<RunOutcome> launched = launchSteps(cancel);
  m_launchNs = nanosecondsSince(start);
  return launched;
}

/// A device tells of a fault when it is waited for, whichever step it was in.
Result<void> Executor::launchAlone(Launch& item) {
  if (Result<void> launched = launch(item); !launched) return launched;
  if (Result<void> done = wait(*m_backend); !done) return stepError(m_plan.steps[item.step], done.error().message);
  return {};
}

Result<RunOutcome> Executor::run(std::stop_token cancel) {
  if (m_hasCompletedRun && !std::exchange(m_hasTriedToRecord, true)) recordLaunches();
  if (m_hasCompletedRun && m_totalClock) return launchBetweenEnds(cancel);
  const Clock::time_point start = Clock::now();
  Result<RunOutcome> outcome = launchAndWait(cancel);
  m_runNs = nanosecondsSince(start);
  m_hasCompletedRun = m_hasCompletedRun || (outcome && *outcome == RunOutcome::Completed);
  return outcome;
}

Result<RunOutcome> Executor::launchAndWait(const std::stop_token& cancel) {
  Result<RunOutcome> launched = launchAll(cancel);
  if (!launched || *launched == RunOutcome::Cancelled) return launched;
  if (Result<void> done = wait(*m_backend); !done) return done.error();
  return RunOutcome::Completed;
}

bool Executor::isHostApart() const {
  return m_recording || (m_options.replaysLaunches && m_launches.size() < kFewestRecorded);
}

void Executor::getAhead(DeviceClock& clock, double launchNs) {
  const double believedNs = std::min(launchNs, kMostLaunchNs * static_cast<double>(m_launches.size()));
  const double ns = std::max(kHeadStartShare * believedNs, kLeastHeadStartNs);
  clock.takeHeadStart(std::chrono::nanoseconds(static_cast<std::int64_t>(ns)));
}

/// The host's clock would count how long it takes to reach the device and to hear of the end, in every run the same.
Result<RunOutcome> Executor::launchBetweenEnds(const std::stop_token& cancel) {
  const Result<void> begun = attempt([&] {
    if (isHostApart()) getAhead(*m_totalClock, m_launchNs);
    m_totalClock->mark(kBegin);
  });
  if (!begun) return begun.error();
  Result<RunOutcome> launched = launchAll(cancel);
  if (!launched || *launched == RunOutcome::Cancelled) return launched;
  const Result<void> ended = attempt([&] {
    m_totalClock->mark(kEnd);
    m_totalClock->markTransfers(kEndOfTransfers);
    m_backend->synchronize();
    m_runNs = std::max(m_totalClock->nanosecondsBetween(kBegin, kEnd),
                       m_totalClock->nanosecondsBetween(kBegin, kEndOfTransfers));
  });
  if (!ended) return ended.error();
  return RunOutcome::Completed;
}

Result<RunOutcome> Executor::runObserved(const StepObserver& observer, std::stop_token cancel) {
  if (m_trace && !m_launches.empty()) return runTraced(observer, cancel);
  if (m_clock) return runOnDeviceClock(observer, cancel);
  const Clock::time_point start = Clock::now();
  Result<RunOutcome> outcome = runOnHostClock(observer, cancel);
  m_observedNs = nanosecondsSince(start);
  return outcome;
}

/// Kernels have nothing to do for tensors without elements.
bool Executor::writesAnything() const {
  const auto isWritten = [this](const Launch& item) {
    const std::vector<StepOperand>& operands = m_plan.steps[item.step].operands;
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (operands[i].access != OperandAccess::Read && item.operands[i]) return true;
    return false;
  };
  return std::ranges::any_of(m_launches, isWritten);
}

void Executor::noteLaunches() {
  m_hostLaunches.clear();
  m_hostLaunches.reserve(m_launches.size());
  m_notesSince = Clock::now();
}

/// Where the host is left out, from the first that the device does, or what it did alone where nothing was recorded;
/// else from where the host begins to launch.
double Executor::tracedNs() const {
  double endNs = 0.0;
  double busyNs = 0.0;
  for (const DeviceActivity& activity : m_activities) busyNs += activity.durationNs;
  for (const DeviceActivity& activity : m_activities) endNs = std::max(endNs, activity.startNs + activity.durationNs);
  if (isHostApart() && !m_recording) return busyNs;
  return endNs - (isHostApart() ? m_activities.front().startNs : 0.0);
}

void Executor::giveUpTrace(const std::string& reason) {
  if (!m_trace) return;
  m_trace.reset();
  m_notesSince.reset();
  m_clockNote = reason;
  m_activities.clear();
  makeClock();
}

/// A trace may lose what a run did; all that was measured before is not given up for that.
Result<RunOutcome> Executor::runTraced(const StepObserver& observer, const std::stop_token& cancel) {
  constexpr int kTries = 3;
  Result<void> seen;
  Result<RunOutcome> outcome = RunOutcome::Completed;
  int tries = 0;
  do {
    if (seen = attempt([&] { m_trace->start(); }); !seen) break;
    noteLaunches();
    outcome = launchAndWait(cancel);
    m_observedNs = nanosecondsSince(*m_notesSince);
    m_notesSince.reset();
    seen = attempt([&] { m_activities = m_trace->stop(); });
    if (!outcome || *outcome == RunOutcome::Cancelled) return outcome;
  } while (!seen && writesAnything() && ++tries < kTries);
  if (!seen && writesAnything()) {
    giveUpTrace(seen.error().message);
    return runObserved(observer, cancel);
  }
  if (m_totalClock && !m_activities.empty()) m_observedNs = tracedNs();
  const std::vector<double> stepNs = busyNsBySteps(m_activities, m_plan.steps.size());
  const std::vector<double> startNs = startNsBySteps(m_activities, m_plan.steps.size());
  for (const Launch& item : m_launches) observer(item.step, startNs[item.step], stepNs[item.step]);
  return outcome;
}

Result<RunOutcome> Executor::runOnHostClock(const StepObserver& observer, const std::stop_token& cancel) {
  const Clock::time_point begin = Clock::now();
  for (Launch& item : m_launches) {
    if (cancel.stop_requested()) return cancelled();
    const double startNs = nanosecondsSince(begin);
    if (Result<void> done = launchAlone(item); !done) return done.error();
    observer(item.step, startNs, nanosecondsSince(begin) - startNs);
  }
  return RunOutcome::Completed;
}

Result<RunOutcome> Executor::launchBetweenMarks(const std::stop_token& cancel) {
  const Clock::time_point start = Clock::now();
  if (Result<void> marked = attempt([&] { m_clock->mark(0); }); !marked) return marked.error();
  for (std::size_t i = 0; i < m_launches.size(); ++i) {
    if (cancel.stop_requested()) return cancelled();
    if (Result<void> launched = launch(m_launches[i]); !launched) return launched.error();
    const bool begins = beginsTransfer(m_plan.steps[m_launches[i].step]);
    const Result<void> marked = attempt([&] {
      m_clock->mark(i + 1);
      if (begins) m_clock->markTransfers(m_launches.size() + 1 + i);
    });
    if (!marked) return marked.error();
  }
  m_markedLaunchNs = nanosecondsSince(start);
  return RunOutcome::Completed;
}

/// A step ends where the next one begins; nothing waits before the last one has ended.
Result<RunOutcome> Executor::runOnDeviceClock(const StepObserver& observer, const std::stop_token& cancel) {
  noteLaunches();
  if (isHostApart())
    if (Result<void> ahead = attempt([&] { getAhead(*m_clock, m_markedLaunchNs); }); !ahead) return ahead.error();
  const Result<RunOutcome> launched = launchBetweenMarks(cancel);
  m_notesSince.reset();
  if (isHostApart()) m_hostLaunches.clear();  // nothing waited for them
  if (!launched || *launched == RunOutcome::Cancelled) return launched;
  if (Result<void> done = wait(*m_backend); !done) return done.error();
  if (Result<void> read = attempt([&] { m_observedNs = readMarks(observer); }); !read) return read.error();
  return RunOutcome::Completed;
}

/// How long all took.
double Executor::readMarks(const StepObserver& observer) {
  double startNs = 0.0;
  std::vector<double> startsNs;
  for (std::size_t i = 0; i < m_launches.size(); ++i) {
    const double durationNs = m_clock->nanosecondsBetween(i, i + 1);
    observer(m_launches[i].step, startNs, durationNs);
    startsNs.push_back(startNs);
    startNs += durationNs;
  }
  return std::max(startNs, readTransferMarks(startsNs));
}

/// They run one after the other: each begins when its step does, or when the one before it has ended. Gives the end of
/// the last.
double Executor::readTransferMarks(const std::vector<double>& stepStartsNs) {
  m_activities.clear();
  double lastEndNs = 0.0;
  for (std::size_t i = 0; i < m_launches.size(); ++i) {
    const Step& step = m_plan.steps[m_launches[i].step];
    if (!beginsTransfer(step)) continue;
    const double endNs = m_clock->nanosecondsBetween(0, m_launches.size() + 1 + i);
    const double startNs = std::max(stepStartsNs[i], lastEndNs);
    m_activities.push_back({.name = step.transfer->isOffload() ? "copy, device to host" : "copy, host to device",
                            .configuration = formatBytes(m_plan.spec(step.operands[1]).bytes()),
                            .step = m_launches[i].step,
                            .startNs = startNs,
                            .durationNs = std::max(endNs - startNs, 0.0)});
    lastEndNs = std::max(lastEndNs, endNs);
  }
  return lastEndNs;
}

std::int64_t Executor::memoryBytes() const { return m_plan.peakBytes() + static_cast<std::int64_t>(m_workspaceBytes); }

std::vector<std::string> Executor::ways(std::size_t step) const {
  const auto launch = std::ranges::find(m_launches, step, &Launch::step);
  return launch == m_launches.end() ? std::vector<std::string>() : launch->kernel->ways();
}

std::int64_t Executor::launches(std::size_t step) const {
  const auto launch = std::ranges::find(m_launches, step, &Launch::step);
  return launch == m_launches.end() ? 0 : launch->kernel->launches();
}

Result<Tensor> Executor::read(std::string_view tensorName) const {
  const int index = m_plan.findTensor(tensorName);
  if (index < 0) return unknownTensor(tensorName, m_plan);
  Tensor tensor = Tensor::zeros(m_plan.tensors[static_cast<std::size_t>(index)].spec);
  const std::byte* const source = address(index);
  if (!source) return tensor;
  if (m_plan.tensors[static_cast<std::size_t>(index)].role == TensorRole::Offloaded) {
    std::memcpy(tensor.data.data(), source, tensor.data.size());
    return tensor;
  }
  if (Result<void> copied = attempt([&] { m_backend->download(tensor.data, source); }); !copied) return copied.error();
  return tensor;
}

}  // namespace fuseline
