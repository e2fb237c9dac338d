// Runs executors on the threads of their ranks.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/ranked_executor.h"

#include "core/profile/stats.h"

#include <algorithm>
#include <utility>

namespace fuseline {

namespace {

Communicator& communicatorOf(RankTeam& team, const RankResources& resources, int rank) {
  return resources.communicator ? *resources.communicator : team.communicator(rank);
}

}  // namespace

Result<void> joinRanks(RankTeam& team, std::vector<RankResources>& ranks, SumOrder order) {
  if (ranks.front().backend->hasHostMemory()) return {};
  return team.run([&](int rank) -> Result<void> {
    RankResources& own = ranks[static_cast<std::size_t>(rank)];
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
      m_observed(m_executors.size()),
      m_samples(plan.steps.size(), std::vector<std::vector<double>>(m_executors.size())) {}

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
    return {};
  });
  if (!made) return made.error();
  return ranked;
}

/// A rank that failed leaves its group, so that its device can be given back.
Result<void> RankedExecutor::runAs(int rank, const std::function<Result<RunOutcome>(Executor&)>& action) {
  m_team.communicator(rank).barrier();
  const Result<RunOutcome> outcome = action(*m_executors[static_cast<std::size_t>(rank)]);
  if (outcome) return {};
  communicatorOf(m_team, m_ranks[static_cast<std::size_t>(rank)], rank).leave();
  return outcome.error();
}

Result<RunOutcome> RankedExecutor::run(std::stop_token cancel) {
  if (cancel.stop_requested()) return RunOutcome::Cancelled;
  const Result<void> ran =
      m_team.run([&](int rank) { return runAs(rank, [](Executor& executor) { return executor.run(); }); });
  if (!ran) return ran.error();
  return RunOutcome::Completed;
}

Result<RunOutcome> RankedExecutor::runObserved(const StepObserver& observer, std::stop_token cancel) {
  if (cancel.stop_requested()) return RunOutcome::Cancelled;
  const Result<void> ran = m_team.run([&](int rank) -> Result<void> {
    std::vector<StepTime>& times = m_observed[static_cast<std::size_t>(rank)];
    times.clear();
    const auto keep = [&](std::size_t step, double startNs, double durationNs) {
      times.push_back({step, startNs, durationNs});
    };
    return runAs(rank, [&](Executor& executor) { return executor.runObserved(keep); });
  });
  if (!ran) return ran.error();
  keepSamples(observer);
  return RunOutcome::Completed;
}

void RankedExecutor::keepSamples(const StepObserver& observer) {
  for (std::size_t i = 0; i < m_observed.front().size(); ++i) {
    StepTime longest = m_observed.front()[i];
    for (std::size_t rank = 0; rank < m_observed.size(); ++rank) {
      const StepTime& time = m_observed[rank][i];
      longest.durationNs = std::max(longest.durationNs, time.durationNs);
      m_samples[time.step][rank].push_back(time.durationNs);
    }
    observer(longest.step, longest.startNs, longest.durationNs);
  }
}

double RankedExecutor::slowest(double (Executor::*time)() const) const {
  double longest = 0.0;
  for (const std::unique_ptr<Executor>& executor : m_executors) longest = std::max(longest, ((*executor).*time)());
  return longest;
}

std::int64_t RankedExecutor::memoryBytes() const {
  std::int64_t bytes = 0;
  for (const std::unique_ptr<Executor>& executor : m_executors) bytes += executor->memoryBytes();
  return bytes;
}

Result<Tensor> RankedExecutor::read(std::string_view tensorName) const {
  std::vector<Tensor> shards;
  for (const std::unique_ptr<Executor>& executor : m_executors) {
    Result<Tensor> shard = executor->read(tensorName);
    if (!shard) return shard.error();
    shards.push_back(std::move(*shard));
  }
  const auto shard = m_shards.find(tensorName);
  return wholeOf(shards, shard == m_shards.end() ? Shard() : shard->second);
}

std::vector<double> RankedExecutor::rankNs(std::size_t step) const {
  std::vector<double> medians;
  for (const std::vector<double>& samples : m_samples[step])
    if (!samples.empty()) medians.push_back(summarize(samples).median);
  return medians;
}

double RankedExecutor::transferNs(std::size_t step) const {
  std::vector<double> least = m_samples[step].front();
  for (const std::vector<double>& samples : m_samples[step])
    for (std::size_t i = 0; i < least.size(); ++i) least[i] = std::min(least[i], samples[i]);
  return least.empty() ? 0.0 : summarize(least).median;
}

std::int64_t RankedExecutor::wireBytes(std::size_t step) const {
  std::int64_t bytes = 0;
  for (const CollectivePart& part : collectiveParts(m_plan, m_plan.steps[step], {}))
    bytes += fuseline::wireBytes(m_plan.steps[step].collective->kind,
                                 wholeBytes(m_plan.steps[step].collective->kind, part, m_team.size()), m_team.size());
  return bytes;
}

}  // namespace fuseline
