// Runs a plan and times it.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/executor.h"

#include "core/runtime/activity_samples.h"
#include "core/runtime/attempt.h"
#include "core/support/text.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

using Clock = std::chrono::steady_clock;

double nanosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
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

/// Does it start something that takes place beside the steps after it?
bool beginsBeside(const Step& step) {
  if (step.collective) return step.collective->half == CollectiveWork::Half::Begin;
  return step.transfer && !step.transfer->isWait();
}

/// Without its times.
DeviceActivity besideActivity(const Plan& plan, std::size_t index) {
  const Step& step = plan.steps[index];
  std::string name = step.kernel;
  if (step.transfer) name = step.transfer->isOffload() ? "copy, device to host" : "copy, host to device";
  return {
      .name = std::move(name), .configuration = formatBytes(plan.spec(step.operands.back()).bytes()), .step = index};
}

}  // namespace

Capabilities capabilitiesOf(std::shared_ptr<const Backend> backend) {
  Capabilities capabilities = [backend](const KernelQuery& query) { return backend->supports(query); };
  capabilities.extraCost = [backend](const Plan& plan, const Step& step) { return backend->extraCost(plan, step); };
  return capabilities;
}

Verdict Backend::multiplies(const Recipe& recipe) {
  const std::optional<ComputeCapability> capability = parseCapability(device().architecture);
  return capability ? fuseline::supports(recipe, *capability) : Verdict::yes();
}

std::unique_ptr<Transfer> Backend::makeTransfer(std::span<std::byte> to, const std::byte* from, TransferDirection) {
  return std::make_unique<HostTransfer>(to, from);
}

Result<std::unique_ptr<Communicator>> Backend::join(Communicator& host, SumOrder /*order*/) {
  return Error{
      fmt::format(
          "--ranks {}: {} supports one rank. Use --device cpu or cuda; to plan only, use `fuseline fuse` with --ranks.",
          host.size(), device().id),
      ErrorKind::NoDevice};
}

Capabilities BackendRegistry::capabilities(std::string_view deviceId) const {
  Result<std::shared_ptr<Backend>> backend = open(deviceId);
  return backend ? capabilitiesOf(std::move(*backend)) : Capabilities();
}

Executor::Executor(std::shared_ptr<Backend> backend, const Graph& graph, const Plan& plan,
                   const ExecutorOptions& options)
    : m_backend(std::move(backend)),
      m_plan(plan),
      m_options(options),
      m_memory(*m_backend, plan),
      m_launcher(*m_backend, graph, plan, options.replaysLaunches, options.communicator) {}

Result<std::unique_ptr<Executor>> Executor::create(std::shared_ptr<Backend> backend, const Graph& graph,
                                                   const Plan& plan, const NamedTensors& bindings,
                                                   std::span<const ResultBuffer> buffers,
                                                   const ExecutorOptions& options) {
  std::unique_ptr<Executor> executor(new Executor(std::move(backend), graph, plan, options));
  if (Result<void> placed = executor->m_memory.place(buffers); !placed) return placed.error();
  executor->makeTrace();  // first: a tracing library wants to see how code is loaded
  if (Result<void> prepared = executor->prepare(bindings); !prepared) return prepared.error();
  if (Result<void> made = attempt([&] { executor->makeClock(); }); !made) return made.error();
  return executor;
}

Result<void> Executor::prepare(const NamedTensors& bindings) {
  if (Result<void> compiled = m_launcher.compile(); !compiled) return compiled;
  if (Result<void> allocated = m_memory.allocate(m_launcher.workspaceBytes()); !allocated) return allocated;
  if (Result<void> allocated = m_launcher.allocateWorkspace(); !allocated) return allocated;
  if (Result<void> uploaded = m_memory.upload(bindings); !uploaded) return uploaded;
  if (Result<void> bound = m_launcher.bind(m_memory); !bound) return bound;
  return m_launcher.runOnce(bindings);
}

void Executor::makeTrace() {
  if (m_options.clock != StepClock::Trace) return;
  Result<std::unique_ptr<DeviceTrace>> made = m_backend->makeTrace();
  if (!made) {
    m_clockNote = made.error().message;
    return;
  }
  m_trace = std::move(*made);
  m_launcher.setTrace(m_trace.get());
}

void Executor::makeClock() {
  // A mark before each launch and after the last one, and one after each transfer.
  if (m_options.clock != StepClock::Host && !m_trace) m_clock = m_backend->makeClock(2 * m_launcher.all().size() + 1);
  if (m_options.clock != StepClock::Host) m_totalClock = m_backend->makeClock(kNumEnds);
  m_markedLaunchNs = kAssumedLaunchNs * static_cast<double>(m_launcher.all().size());
}

StepClock Executor::clock() const {
  if (m_options.clock == StepClock::None) return StepClock::None;
  if (m_trace) return StepClock::Trace;
  return m_clock ? StepClock::Events : StepClock::Host;
}

Result<RunOutcome> Executor::run(std::stop_token cancel) {
  const bool isFirst = !m_launcher.trustsSteps();
  if (!isFirst) m_launcher.record();
  if (!isFirst && m_totalClock) return launchBetweenEnds(cancel);
  const Clock::time_point start = Clock::now();
  Result<RunOutcome> outcome = m_launcher.launchAndWait(cancel);
  m_runNs = nanosecondsSince(start);
  if (outcome && *outcome == RunOutcome::Completed) m_launcher.trustSteps();
  return outcome;
}

void Executor::getAhead(DeviceClock& clock, double launchNs) {
  const double believedNs = std::min(launchNs, kMostLaunchNs * static_cast<double>(m_launcher.all().size()));
  const double ns = std::max(kHeadStartShare * believedNs, kLeastHeadStartNs);
  clock.takeHeadStart(std::chrono::nanoseconds(static_cast<std::int64_t>(ns)));
}

/// The host's clock would count how long it takes to reach the device and to hear of the end, in every run the same.
Result<RunOutcome> Executor::launchBetweenEnds(const std::stop_token& cancel) {
  const Result<void> begun = attempt([&] {
    if (m_launcher.isHostApart()) getAhead(*m_totalClock, m_launcher.launchNs());
    m_totalClock->mark(kBegin);
  });
  if (!begun) return begun.error();
  Result<RunOutcome> launched = m_launcher.launchAll(cancel);
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
  if (m_trace && !m_launcher.all().empty()) return runTraced(observer, cancel);
  if (m_clock) return runOnDeviceClock(observer, cancel);
  const Clock::time_point start = Clock::now();
  Result<RunOutcome> outcome = runOnHostClock(observer, cancel);
  m_observedNs = nanosecondsSince(start);
  return outcome;
}

/// Where the host is left out, from the first that the device does, or what it did alone where nothing was recorded;
/// else from where the host begins to launch.
double Executor::tracedNs() const {
  double endNs = 0.0;
  double busyNs = 0.0;
  for (const DeviceActivity& activity : m_activities) busyNs += activity.durationNs;
  for (const DeviceActivity& activity : m_activities) endNs = std::max(endNs, activity.startNs + activity.durationNs);
  if (m_launcher.isHostApart() && !m_launcher.isRecorded()) return busyNs;
  return endNs - (m_launcher.isHostApart() ? m_activities.front().startNs : 0.0);
}

void Executor::giveUpTrace(const std::string& reason) {
  if (!m_trace) return;
  m_launcher.setTrace(nullptr);
  m_trace.reset();
  m_launcher.endNotes();
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
    m_launcher.beginNotes();
    outcome = m_launcher.launchAndWait(cancel);
    m_observedNs = nanosecondsSince(m_launcher.notesSince());
    m_launcher.endNotes();
    seen = attempt([&] { m_activities = m_trace->stop(); });
    if (!outcome || *outcome == RunOutcome::Cancelled) return outcome;
  } while (!seen && m_launcher.writesAnything() && ++tries < kTries);
  if (!seen && m_launcher.writesAnything()) {
    giveUpTrace(seen.error().message);
    return runObserved(observer, cancel);
  }
  if (m_totalClock && !m_activities.empty()) m_observedNs = tracedNs();
  const std::vector<double> stepNs = busyNsBySteps(m_activities, m_plan.steps.size());
  const std::vector<double> startNs = startNsBySteps(m_activities, m_plan.steps.size());
  for (const Launcher::Launch& item : m_launcher.all()) observer(item.step, startNs[item.step], stepNs[item.step]);
  return outcome;
}

Result<RunOutcome> Executor::runOnHostClock(const StepObserver& observer, const std::stop_token& cancel) {
  m_activities.clear();
  const Clock::time_point begin = Clock::now();
  for (std::size_t i = 0; i < m_launcher.all().size(); ++i) {
    if (cancel.stop_requested()) return m_launcher.cancelled();
    const double startNs = nanosecondsSince(begin);
    if (Result<void> done = m_launcher.launchAlone(i); !done) return done.error();
    observer(m_launcher.all()[i].step, startNs, nanosecondsSince(begin) - startNs);
    if (m_launcher.stepOf(i).collective) noteCollective(i, begin);
  }
  return RunOutcome::Completed;
}

/// After a wait: the collective that has ended ran beside the steps in front of it. It belongs to the step that began
/// it.
void Executor::noteCollective(std::size_t launch, Clock::time_point begin) {
  if (!m_launcher.stepOf(launch).collective->isWait()) return;
  const std::optional<BesideSpan> span = m_options.communicator->besideSpan();
  while (launch > 0 && !(m_launcher.stepOf(launch).collective && beginsBeside(m_launcher.stepOf(launch)))) --launch;
  if (!span) return;
  const auto sinceBegin = [&](Clock::time_point time) {
    return std::chrono::duration<double, std::nano>(time - begin).count();
  };
  DeviceActivity& activity = m_activities.emplace_back(besideActivity(m_plan, m_launcher.all()[launch].step));
  activity.startNs = sinceBegin(span->start);
  activity.durationNs = sinceBegin(span->end) - activity.startNs;
}

Result<RunOutcome> Executor::launchBetweenMarks(const std::stop_token& cancel) {
  const Clock::time_point start = Clock::now();
  if (Result<void> marked = attempt([&] { m_clock->mark(0); }); !marked) return marked.error();
  for (std::size_t i = 0; i < m_launcher.all().size(); ++i) {
    if (cancel.stop_requested()) return m_launcher.cancelled();
    if (Result<void> launched = m_launcher.launch(i); !launched) return launched.error();
    const bool begins = beginsBeside(m_launcher.stepOf(i));
    const Result<void> marked = attempt([&] {
      m_clock->mark(i + 1);
      if (begins) m_clock->markTransfers(m_launcher.all().size() + 1 + i);
    });
    if (!marked) return marked.error();
  }
  m_markedLaunchNs = nanosecondsSince(start);
  return RunOutcome::Completed;
}

/// A step ends where the next one begins; nothing waits before the last one has ended.
Result<RunOutcome> Executor::runOnDeviceClock(const StepObserver& observer, const std::stop_token& cancel) {
  m_launcher.beginNotes();
  if (m_launcher.isHostApart())
    if (Result<void> ahead = attempt([&] { getAhead(*m_clock, m_markedLaunchNs); }); !ahead) return ahead.error();
  const Result<RunOutcome> launched = launchBetweenMarks(cancel);
  m_launcher.endNotes();
  if (m_launcher.isHostApart()) m_launcher.clearNotes();  // nothing waited for them
  if (!launched || *launched == RunOutcome::Cancelled) return launched;
  if (Result<void> done = m_launcher.wait(); !done) return done.error();
  if (Result<void> read = attempt([&] { m_observedNs = readMarks(observer); }); !read) return read.error();
  return RunOutcome::Completed;
}

/// How long all took.
double Executor::readMarks(const StepObserver& observer) {
  double startNs = 0.0;
  std::vector<double> startsNs;
  for (std::size_t i = 0; i < m_launcher.all().size(); ++i) {
    const double durationNs = m_clock->nanosecondsBetween(i, i + 1);
    observer(m_launcher.all()[i].step, startNs, durationNs);
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
  for (std::size_t i = 0; i < m_launcher.all().size(); ++i) {
    if (!beginsBeside(m_launcher.stepOf(i))) continue;
    const double endNs = m_clock->nanosecondsBetween(0, m_launcher.all().size() + 1 + i);
    const double startNs = std::max(stepStartsNs[i], lastEndNs);
    DeviceActivity& activity = m_activities.emplace_back(besideActivity(m_plan, m_launcher.all()[i].step));
    activity.startNs = startNs;
    activity.durationNs = std::max(endNs - startNs, 0.0);
    lastEndNs = std::max(lastEndNs, endNs);
  }
  return lastEndNs;
}

std::int64_t Executor::memoryBytes() const {
  return m_plan.peakBytes() + static_cast<std::int64_t>(m_launcher.workspaceBytes());
}

std::vector<std::string> Executor::ways(std::size_t step) const {
  const Launcher::Launch* const launch = m_launcher.find(step);
  return launch ? launch->kernel->ways() : std::vector<std::string>();
}

std::int64_t Executor::launches(std::size_t step) const {
  const Launcher::Launch* const launch = m_launcher.find(step);
  return launch ? launch->kernel->launches() : 0;
}

}  // namespace fuseline
