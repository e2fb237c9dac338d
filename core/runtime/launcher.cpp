// Compiles the steps of a plan, and launches them.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/launcher.h"

#include "core/runtime/attempt.h"
#include "core/runtime/step_name.h"
#include "core/tensor/scaling.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace fuseline {

namespace {

using Clock = std::chrono::steady_clock;

Error stepError(const Step& step, std::string_view problem) {
  return {fmt::format("{}: {}", describe(step), problem), ErrorKind::RunFailed};
}

/// Fewer launches are not worth a recording: a replay is a launch, too.
constexpr std::size_t kFewestRecorded = 3;

/// Launches in its lifetime belong to a step.
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
  double now() const {
    return m_since ? std::chrono::duration<double, std::nano>(Clock::now() - *m_since).count() : 0.0;
  }

  std::vector<TimelineSpan>& m_spans;
  std::optional<Clock::time_point> m_since;
  TimelineSpan m_span;
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

class CollectiveKernel final : public Kernel {
 public:
  CollectiveKernel(Communicator& communicator, const CollectiveWork& work, std::string name,
                   std::vector<CollectivePart> parts)
      : m_communicator(communicator), m_work(work), m_name(std::move(name)), m_parts(std::move(parts)) {}
  void prepare() {
    if (!m_work.isWait()) m_communicator.prepare(call());
  }
  void run(std::span<std::byte* const>, std::byte*) override {
    switch (m_work.half) {
      case CollectiveWork::Half::Whole: return m_communicator.run(call());
      case CollectiveWork::Half::Begin: return m_communicator.begin(call());
      case CollectiveWork::Half::Await: return m_communicator.await();
    }
  }
  std::int64_t launches() const override { return m_work.isWait() ? 0 : 1; }

 private:
  Collective call() const {
    return {.kind = m_work.kind, .reduction = m_work.reduction, .name = m_name, .parts = m_parts};
  }

  Communicator& m_communicator;
  CollectiveWork m_work;
  std::string m_name;
  std::vector<CollectivePart> m_parts;
};

std::int64_t partCount(const CollectiveWork& work, const TensorSpec& from, const TensorSpec& to) {
  if (work.numElements >= 0) return work.numElements;
  return work.kind == CollectiveKind::ReduceScatter ? to.numElements() : from.numElements();
}

/// Bytes of a quantized tensor that follow each other on this rank, and their places there and in the whole tensor.
struct SentBytes {
  std::int64_t count = 0;
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t rankStride = 0;
};

/// The encoded values, and the scales of blocks: where these are stored a column of blocks at a time, a piece each.
std::vector<SentBytes> sentBytes(const TensorSpec& rows, const TensorSpec& whole, std::int64_t rankRows) {
  const CopyParts own = partsOf(rows);
  const CopyParts all = partsOf(whole);
  const Scaling scaling = rows.quantized->scaling;
  std::vector<SentBytes> sent = {
      {.count = own.codesBytes, .rankStride = rankRows * codeBytes(rows.quantized->format, rows.cols())}};
  if (scaling == Scaling::PerTensor || own.scalesBytes == 0) return sent;
  const ScalePlaces ownPlaces = scalePlacesOf(rows, scaling, rows.quantized->direction);
  const ScalePlaces allPlaces = scalePlacesOf(whole, scaling, whole.quantized->direction);
  const std::int64_t scaleBytes = own.scalesBytes / ownPlaces.count;
  const std::int64_t columns =
      scaling == Scaling::Block1x128 ? blockGridOf(rows, scaling, rows.quantized->direction).cols : 1;
  const std::int64_t rankBlocks = rankRows / blockOf(scaling, rows.quantized->direction).rows;
  for (std::int64_t column = 0; column < columns; ++column)
    sent.push_back({.count = own.scalesBytes / columns,
                    .from = own.scalesOffset + column * ownPlaces.colStride * scaleBytes,
                    .to = all.scalesOffset + column * allPlaces.colStride * scaleBytes,
                    .rankStride = rankBlocks * allPlaces.rowStride * scaleBytes});
  return sent;
}

/// Byte ranges sent of a tensor whose lines of all ranks belong beside each other: the values of all ranks, then the
/// scales.
std::vector<SentBytes> sentInLines(const TensorSpec& rows, const TensorSpec& sent) {
  const CopyParts own = partsOf(rows);
  const std::int64_t ranks = sent.numElements() / (own.codesBytes + own.scalesBytes);
  return {SentBytes{.count = own.codesBytes},
          SentBytes{.count = own.scalesBytes, .from = own.scalesOffset, .to = ranks * own.codesBytes}};
}

struct OperandPair {
  const TensorSpec& fromSpec;
  const TensorSpec& toSpec;
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
};

void addParts(const CollectiveWork& work, const OperandPair& pair, std::vector<CollectivePart>& parts) {
  if (!pair.fromSpec.quantized) {
    parts.push_back({pair.fromSpec.dtype, partCount(work, pair.fromSpec, pair.toSpec), pair.from, pair.to,
                     work.rankRows * pair.fromSpec.cols()});
    return;
  }
  const bool isInLines = !pair.toSpec.quantized;
  for (const SentBytes& sent :
       isInLines ? sentInLines(pair.fromSpec, pair.toSpec) : sentBytes(pair.fromSpec, pair.toSpec, work.rankRows))
    parts.push_back({DType::U8, sent.count, pair.from ? pair.from + sent.from : nullptr,
                     pair.to ? pair.to + sent.to : nullptr, sent.rankStride});
}

}  // namespace

/// Operands in pairs of source and destination, or in place.
std::vector<CollectivePart> collectiveParts(const Plan& plan, const Step& step, std::span<std::byte* const> addresses) {
  std::vector<CollectivePart> parts;
  std::size_t from = 0;
  const auto addressOf = [&](std::size_t operand) { return addresses.empty() ? nullptr : addresses[operand]; };
  for (std::size_t i = 0; i < step.operands.size(); ++i) {
    const StepOperand& operand = step.operands[i];
    if (operand.access == OperandAccess::Read) {
      from = i;
      continue;
    }
    if (operand.access == OperandAccess::Accumulate) from = i;
    addParts(*step.collective, {plan.spec(step.operands[from]), plan.spec(operand), addressOf(from), addressOf(i)},
             parts);
  }
  return parts;
}

Result<void> Launcher::compile() {
  const CompileOptions options{.parametersAreConstant = m_graph.pass() == ExecutionMode::Inference};
  for (std::size_t index = 0; index < m_plan.steps.size(); ++index) {
    const Step& step = m_plan.steps[index];
    if (step.isView) continue;
    if (step.transfer || step.collective) {
      if (step.collective && !m_communicator)
        return stepError(step, "it communicates, but there is only one rank. Plan for one rank.");
      m_launches.push_back({.step = index});
      continue;
    }
    Result<std::unique_ptr<Kernel>> kernel = m_backend.compile(m_graph, m_plan, step, options);
    if (!kernel) return stepError(step, kernel.error().message);
    m_workspaceBytes = std::max(m_workspaceBytes, (*kernel)->workspaceBytes());
    m_launches.push_back({.step = index, .kernel = std::move(*kernel)});
  }
  return {};
}

Result<void> Launcher::allocateWorkspace() {
  Result<std::unique_ptr<DeviceMemory>> memory = m_backend.allocate(std::max<std::size_t>(1, m_workspaceBytes));
  if (!memory) return memory.error();
  m_workspace = std::move(*memory);
  return {};
}

Result<void> Launcher::bind(const PlanMemory& memory) {
  for (Launch& launch : m_launches)
    for (const StepOperand& operand : m_plan.steps[launch.step].operands)
      launch.operands.push_back(memory.address(operand.tensor));
  return attempt([&] {
    makeTransfers();
    makeCollectives();
  });
}

/// The kernels of steps that begin or end a copy.
void Launcher::makeTransfers() {
  std::map<std::pair<int, int>, std::shared_ptr<Transfer>> transfers;  // by what is copied where
  for (Launch& launch : m_launches) {
    const Step& step = m_plan.steps[launch.step];
    if (!step.transfer) continue;
    const StepOperand& to = step.operands[1];
    std::shared_ptr<Transfer>& transfer = transfers[{step.operands[0].tensor, to.tensor}];
    if (!transfer)
      transfer = m_backend.makeTransfer(
          {launch.operands[1], static_cast<std::size_t>(m_plan.spec(to).bytes())}, launch.operands[0],
          step.transfer->isOffload() ? TransferDirection::ToHost : TransferDirection::ToDevice);
    launch.kernel = m_backend.named(std::make_unique<TransferKernel>(transfer, step.transfer->isWait()), m_plan, step);
  }
}

void Launcher::makeCollectives() {
  for (Launch& launch : m_launches) {
    const Step& step = m_plan.steps[launch.step];
    if (!step.collective) continue;
    auto kernel = std::make_unique<CollectiveKernel>(*m_communicator, *step.collective, describe(step),
                                                     collectiveParts(m_plan, step, launch.operands));
    kernel->prepare();
    launch.kernel = m_backend.named(std::move(kernel), m_plan, step);
  }
}

/// The parameters lie in memory of their own until the device is done with them.
Result<void> Launcher::launchFrom(Launch& item, std::size_t index, const NamedTensors& bindings) {
  std::vector<std::unique_ptr<DeviceMemory>> sources;
  const std::vector<StepOperand>& operands = stepOf(index).operands;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const PlanTensor& tensor = m_plan.tensors[static_cast<std::size_t>(operands[i].tensor)];
    if (!tensor.isInitialOnly) continue;
    const auto given = std::ranges::find(bindings, tensor.name, &NamedTensors::value_type::first);
    Result<std::unique_ptr<DeviceMemory>> memory =
        m_backend.allocate(std::max<std::size_t>(1, given->second.data.size()));
    if (!memory) return memory.error();
    item.operands[i] = (*memory)->data();
    sources.push_back(std::move(*memory));
    if (Result<void> copied = attempt([&] { m_backend.upload(item.operands[i], given->second.data); }); !copied)
      return copied;
  }
  if (Result<void> launched = launch(index); !launched || sources.empty()) return launched;
  return wait();
}

Result<void> Launcher::runOnce(const NamedTensors& bindings) {
  const auto runsOnce = [this](const Launch& item) { return m_plan.steps[item.step].runsOnce; };
  for (std::size_t i = 0; i < m_launches.size(); ++i)
    if (runsOnce(m_launches[i]))
      if (Result<void> launched = launchFrom(m_launches[i], i, bindings); !launched) return launched;
  if (Result<void> done = wait(); !done) return done;
  std::erase_if(m_launches, runsOnce);
  return {};
}

const Launcher::Launch* Launcher::find(std::size_t step) const {
  const auto launch = std::ranges::find(m_launches, step, &Launch::step);
  return launch == m_launches.end() ? nullptr : &*launch;
}

/// Kernels have nothing to do for tensors without elements.
bool Launcher::writesAnything() const {
  const auto isWritten = [this](const Launch& item) {
    const std::vector<StepOperand>& operands = m_plan.steps[item.step].operands;
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (operands[i].access != OperandAccess::Read && item.operands[i]) return true;
    return false;
  };
  return std::ranges::any_of(m_launches, isWritten);
}

Result<void> Launcher::wait() {
  return attempt([&] { m_backend.synchronize(); });
}

Result<void> Launcher::launch(std::size_t index) {
  Launch& item = m_launches[index];
  const HostSpan noted(m_notes, m_notesSince, static_cast<int>(item.step));
  try {
    const StepScope scope(m_trace, item.step);
    item.kernel->run(item.operands, m_workspace->data());
  } catch (const std::exception& problem) {
    return stepError(m_plan.steps[item.step], problem.what());
  }
  return {};
}

/// A device tells of a fault when it is waited for, whichever step it was in.
Result<void> Launcher::launchAlone(std::size_t index) {
  if (Result<void> launched = launch(index); !launched) return launched;
  if (Result<void> done = wait(); !done) return stepError(stepOf(index), done.error().message);
  return {};
}

Result<void> Launcher::launchEach() {
  for (std::size_t i = 0; i < m_launches.size(); ++i)
    if (Result<void> launched = launch(i); !launched) return launched;
  return {};
}

Result<RunOutcome> Launcher::cancelled() {
  if (Result<void> done = wait(); !done) return done.error();
  return RunOutcome::Cancelled;
}

void Launcher::record() {
  if (std::exchange(m_hasTriedToRecord, true) || !m_replays || m_launches.size() < kFewestRecorded) return;
  Result<std::unique_ptr<RecordedLaunches>> recorded = m_backend.record([this] { return launchEach(); });
  if (!recorded)
    m_launching = "step by step: " + recorded.error().message;
  else if (m_recording = std::move(*recorded); m_recording)
    m_launching = "captured and replayed";
  if (m_communicator) agreeOnRecording();
}

/// Ranks replay their recordings together or not at all: collectives of a recording meet those of recordings.
void Launcher::agreeOnRecording() {
  bool isEverywhere = false;
  const Result<void> asked = attempt([&] { isEverywhere = m_communicator->agree(m_recording != nullptr); });
  if (!m_recording || isEverywhere) return;
  m_recording.reset();
  m_launching =
      "step by step: " + (asked ? std::string("another rank could not capture its plan.") : asked.error().message);
}

bool Launcher::isHostApart() const { return m_recording || (m_replays && m_launches.size() < kFewestRecorded); }

Result<RunOutcome> Launcher::launchSteps(const std::stop_token& cancel) {
  if (m_recording) {
    if (cancel.stop_requested()) return cancelled();
    const HostSpan noted(m_notes, m_notesSince, -1);
    if (Result<void> launched = attempt([&] { m_recording->launch(); }); !launched) return launched.error();
    return RunOutcome::Completed;
  }
  for (std::size_t i = 0; i < m_launches.size(); ++i) {
    if (cancel.stop_requested()) return cancelled();
    if (Result<void> launched = m_trustsSteps ? launch(i) : launchAlone(i); !launched) return launched.error();
  }
  return RunOutcome::Completed;
}

Result<RunOutcome> Launcher::launchAll(const std::stop_token& cancel) {
  const Clock::time_point start = Clock::now();
  Result<RunOutcome> launched = launchSteps(cancel);
  m_launchNs = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  return launched;
}

Result<RunOutcome> Launcher::launchAndWait(const std::stop_token& cancel) {
  Result<RunOutcome> launched = launchAll(cancel);
  if (!launched || *launched == RunOutcome::Cancelled) return launched;
  if (Result<void> done = wait(); !done) return done.error();
  return RunOutcome::Completed;
}

void Launcher::beginNotes() {
  m_notes.clear();
  m_notes.reserve(m_launches.size());
  m_notesSince = Clock::now();
}

}  // namespace fuseline
