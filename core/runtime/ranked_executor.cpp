// Runs executors on the threads of their ranks.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/ranked_executor.h"

#include "core/collective/lone_rank.h"
#include "core/profile/stats.h"
#include "core/runtime/planned_collectives.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace fuseline {

namespace {

Communicator& communicatorOf(RankTeam& team, const RankResources& resources, int rank) {
  return resources.communicator ? *resources.communicator : team.communicator(rank);
}

/// `values` has room for those of every rank, and holds the rank's own.
template <class T>
void gather(Communicator& communicator, std::vector<T>& values, std::size_t each, std::string_view name) {
  const std::vector<T> own(values.begin() + static_cast<std::ptrdiff_t>(each) * communicator.rank(),
                           values.begin() + static_cast<std::ptrdiff_t>(each) * (communicator.rank() + 1));
  const auto bytes = std::as_bytes(std::span(own));
  const CollectivePart part{DType::U8, static_cast<std::int64_t>(bytes.size()), bytes.data(),
                            std::as_writable_bytes(std::span(values)).data()};
  communicator.run({.kind = CollectiveKind::AllGather, .name = name, .parts = std::span(&part, 1)});
}

/// All ranks have shards of one size.
void gatherShards(Communicator& communicator, std::vector<Tensor>& shards) {
  const Tensor& own = shards[static_cast<std::size_t>(communicator.rank())];
  std::vector<std::byte> all(own.data.size() * shards.size());
  const CollectivePart part{DType::U8, static_cast<std::int64_t>(own.data.size()), own.data.data(), all.data()};
  communicator.run({.kind = CollectiveKind::AllGather, .name = "a tensor that is read", .parts = std::span(&part, 1)});
  const TensorSpec spec = own.spec;
  const std::size_t bytes = own.data.size();
  for (std::size_t rank = 0; rank < shards.size(); ++rank)
    shards[rank] = {spec, std::vector<std::byte>(all.begin() + static_cast<std::ptrdiff_t>(rank * bytes),
                                                 all.begin() + static_cast<std::ptrdiff_t>((rank + 1) * bytes))};
}

}  // namespace

Result<void> joinRanks(RankTeam& team, std::vector<RankResources>& ranks, SumOrder order) {
  if (ranks[static_cast<std::size_t>(team.firstHere())].backend->hasHostMemory()) return {};
  return team.run([&](int rank) -> Result<void> {
    RankResources& own = ranks[static_cast<std::size_t>(rank)];
    if (isLoneRank(team.communicator(rank))) {
      own.communicator = makeLoneDevice(team.size());
      return {};
    }
    Result<std::unique_ptr<Communicator>> joined = own.backend->join(team.communicator(rank), order);
    if (!joined) return joined.error();
    own.communicator = std::move(*joined);
    return {};
  });
}

/// After a failure no rank waits for others, and none is there to wait for.
void partRanks(RankTeam& team, std::vector<RankResources>& ranks) {
  const Result<void> parted = team.run([&](int rank) -> Result<void> {
    ranks[static_cast<std::size_t>(rank)].communicator.reset();
    return {};
  });
  if (parted) return;
  for (RankResources& rank : ranks) rank.communicator.reset();
}

RankedExecutor::RankedExecutor(RankTeam& team, const std::vector<RankResources>& ranks, const Plan& plan,
                               const ShardMap& shards)
    : m_team(team),
      m_ranks(ranks),
      m_plan(plan),
      m_shards(shards),
      m_executors(static_cast<std::size_t>(team.size())),
      m_times(m_executors.size()),
      m_observed(m_executors.size()),
      m_samples(plan.steps.size(), std::vector<std::vector<double>>(m_executors.size())),
      m_collectiveNs(m_samples) {}

Result<std::unique_ptr<RankedExecutor>> RankedExecutor::create(RankTeam& team, const std::vector<RankResources>& ranks,
                                                               const Plan& plan, const ShardMap& shards,
                                                               const ExecutorOptions& options) {
  std::unique_ptr<RankedExecutor> ranked(new RankedExecutor(team, ranks, plan, shards));
  const Result<void> made = team.run([&](int rank) -> Result<void> {
    ExecutorOptions own = options;
    const RankResources& resources = ranks[static_cast<std::size_t>(rank)];
    own.communicator = &communicatorOf(team, resources, rank);
    auto executor = Executor::create(resources.backend, *resources.graph, plan, resources.bindings, {}, own);
    if (!executor) return executor.error();
    ranked->m_executors[static_cast<std::size_t>(rank)] = std::move(*executor);
    ranked->m_times[static_cast<std::size_t>(rank)].memoryBytes =
        ranked->m_executors[static_cast<std::size_t>(rank)]->memoryBytes();
    return {};
  });
  if (!made) return made.error();
  return ranked;
}

/// A rank that failed leaves its group, so that its device can be given back.
Result<void> RankedExecutor::runAs(int rank, const std::function<Result<RunOutcome>(Executor&)>& action) {
  m_team.communicator(rank).barrier();
  const Result<RunOutcome> outcome = action(*m_executors[static_cast<std::size_t>(rank)]);
  if (outcome) {
    gatherTimes(rank);
    return {};
  }
  communicatorOf(m_team, m_ranks[static_cast<std::size_t>(rank)], rank).leave();
  return outcome.error();
}

/// The others take the decision of rank 0.
Result<bool> RankedExecutor::agree(bool decision) {
  if (!m_team.areProcesses()) return decision;
  auto byte = static_cast<std::byte>(decision);
  const Result<void> agreed = m_team.run([&](int rank) -> Result<void> {
    const CollectivePart part{DType::U8, 1, &byte, &byte};
    m_team.communicator(rank).run(
        {.kind = CollectiveKind::Broadcast, .name = "an agreement", .parts = std::span(&part, 1)});
    return {};
  });
  if (!agreed) return agreed.error();
  return byte != std::byte{0};
}

Result<RunOutcome> RankedExecutor::run(std::stop_token cancel) {
  Result<bool> isOver = agree(cancel.stop_requested());
  if (!isOver) return isOver.error();
  if (*isOver) return RunOutcome::Cancelled;
  const Result<void> ran =
      m_team.run([&](int rank) { return runAs(rank, [](Executor& executor) { return executor.run(); }); });
  if (!ran) return ran.error();
  return RunOutcome::Completed;
}

Result<RunOutcome> RankedExecutor::runObserved(const StepObserver& observer, std::stop_token cancel) {
  Result<bool> isOver = agree(cancel.stop_requested());
  if (!isOver) return isOver.error();
  if (*isOver) return RunOutcome::Cancelled;
  const Result<void> ran = m_team.run([&](int rank) -> Result<void> {
    std::vector<StepTime>& times = m_observed[static_cast<std::size_t>(rank)];
    times.clear();
    const auto keep = [&](std::size_t step, double startNs, double durationNs) {
      times.push_back({step, startNs, durationNs});
    };
    Result<void> done = runAs(rank, [&](Executor& executor) { return executor.runObserved(keep); });
    if (!done) return done;
    noteCollectives(rank);
    gatherSteps(rank);
    return done;
  });
  if (!ran) return ran.error();
  keepSamples(observer);
  return RunOutcome::Completed;
}

void RankedExecutor::noteCollectives(int rank) {
  for (const DeviceActivity& activity : m_executors[static_cast<std::size_t>(rank)]->activities())
    for (StepTime& time : m_observed[static_cast<std::size_t>(rank)])
      if (time.step == activity.step && m_plan.steps[activity.step].collective) time.collectiveNs = activity.durationNs;
}

void RankedExecutor::gatherTimes(int rank) {
  const Executor& executor = *m_executors[static_cast<std::size_t>(rank)];
  m_times[static_cast<std::size_t>(rank)] = {executor.runNs(), executor.launchNs(), executor.observedNs(),
                                             executor.memoryBytes()};
  if (m_team.areProcesses()) gather(m_team.communicator(rank), m_times, 1, "the times of a run");
}

void RankedExecutor::gatherSteps(int rank) {
  if (!m_team.areProcesses()) return;
  const std::size_t each = m_observed[static_cast<std::size_t>(rank)].size();
  std::vector<StepTime> all(each * m_observed.size());
  std::ranges::copy(m_observed[static_cast<std::size_t>(rank)], all.begin() + static_cast<std::ptrdiff_t>(each) * rank);
  gather(m_team.communicator(rank), all, each, "the times of steps");
  for (std::size_t from = 0; from < m_observed.size(); ++from)
    m_observed[from].assign(all.begin() + static_cast<std::ptrdiff_t>(each * from),
                            all.begin() + static_cast<std::ptrdiff_t>(each * (from + 1)));
}

void RankedExecutor::keepSamples(const StepObserver& observer) {
  for (std::size_t i = 0; i < m_observed.front().size(); ++i) {
    StepTime longest = m_observed.front()[i];
    for (std::size_t rank = 0; rank < m_observed.size(); ++rank) {
      const StepTime& time = m_observed[rank][i];
      longest.durationNs = std::max(longest.durationNs, time.durationNs);
      m_samples[time.step][rank].push_back(time.durationNs);
      m_collectiveNs[time.step][rank].push_back(time.collectiveNs);
    }
    observer(longest.step, longest.startNs, longest.durationNs);
  }
}

double RankedExecutor::slowest(double RankTimes::*time) const {
  double longest = 0.0;
  for (const RankTimes& each : m_times) longest = std::max(longest, each.*time);
  return longest;
}

std::int64_t RankedExecutor::memoryBytes() const {
  std::int64_t bytes = 0;
  for (const RankTimes& each : m_times) bytes += each.memoryBytes;
  return bytes;
}

Result<std::vector<Tensor>> RankedExecutor::readShards(std::string_view tensorName) const {
  std::vector<Tensor> shards(m_executors.size());
  const Result<void> done = m_team.run([&](int rank) -> Result<void> {
    Result<Tensor> shard = m_executors[static_cast<std::size_t>(rank)]->read(tensorName);
    if (!shard) return shard.error();
    shards[static_cast<std::size_t>(rank)] = std::move(*shard);
    return {};
  });
  if (!done) return done.error();
  return shards;
}

Result<Tensor> RankedExecutor::read(std::string_view tensorName) const {
  Result<std::vector<Tensor>> shards = readShards(tensorName);
  if (!shards) return shards.error();
  const Result<void> gathered = m_team.run([&](int rank) -> Result<void> {
    if (m_team.areProcesses()) gatherShards(m_team.communicator(rank), *shards);
    return {};
  });
  if (!gathered) return gathered.error();
  const auto shard = m_shards.find(tensorName);
  return wholeOf(*shards, shard == m_shards.end() ? Shard() : shard->second);
}

std::vector<TimelineSpan> RankedExecutor::rankSpans() const {
  std::vector<TimelineSpan> spans;
  for (std::size_t rank = 0; rank < m_observed.size(); ++rank)
    for (const StepTime& time : m_observed[rank])
      spans.push_back({.step = static_cast<int>(time.step),
                       .startNs = time.startNs,
                       .durationNs = time.durationNs,
                       .rank = static_cast<int>(rank)});
  return spans;
}

std::vector<double> RankedExecutor::rankNs(std::size_t step) const {
  std::vector<double> medians;
  for (const std::vector<double>& samples : m_samples[step])
    if (!samples.empty()) medians.push_back(summarize(samples).median);
  return medians;
}

/// The step that ends the collective; the step itself where it is whole.
std::size_t RankedExecutor::waitFor(std::size_t step) const {
  if (m_plan.steps[step].collective->half != CollectiveWork::Half::Begin) return step;
  std::size_t wait = step + 1;
  while (!m_plan.steps[wait].collective || !m_plan.steps[wait].collective->isWait()) ++wait;
  return wait;
}

CollectiveTimes RankedExecutor::collectiveTimes(std::size_t step) const {
  const std::size_t wait = waitFor(step);
  std::vector<double> transfers;
  std::vector<double> exposed;
  std::vector<double> hidden;
  for (std::size_t run = 0; run < m_samples[step].front().size(); ++run) {
    double leastNs = HUGE_VAL;
    double mostExposedNs = -1.0;
    double hiddenNs = 0.0;
    for (std::size_t rank = 0; rank < m_samples[step].size(); ++rank) {
      const double exposedNs = m_samples[step][rank][run] + (wait == step ? 0.0 : m_samples[wait][rank][run]);
      const double wholeNs = wait == step ? exposedNs : m_collectiveNs[step][rank][run];
      leastNs = std::min(leastNs, wholeNs);
      if (exposedNs <= mostExposedNs) continue;
      mostExposedNs = exposedNs;
      hiddenNs = std::max(0.0, wholeNs - exposedNs);
    }
    transfers.push_back(leastNs);
    exposed.push_back(mostExposedNs);
    hidden.push_back(hiddenNs);
  }
  if (transfers.empty()) return {};
  return {summarize(transfers).median, summarize(exposed).median, summarize(hidden).median};
}

std::int64_t RankedExecutor::wireBytes(std::size_t step) const {
  return wireBytesOf(m_plan, m_plan.steps[step], m_team.size());
}

}  // namespace fuseline
