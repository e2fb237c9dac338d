// RankedExecutor: the plans of all ranks of a team, run together and timed as one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/executor.h"
#include "core/runtime/rank_team.h"
#include "core/sharding/shard.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// Backend, graph and tensors of one rank of this process; empty for the ranks of other processes.
struct RankResources {
  std::shared_ptr<Backend> backend;
  const Graph* graph = nullptr;
  NamedTensors bindings;
  /// For memory of its device; nullptr: that is the host's, which the team's communicators serve.
  std::unique_ptr<Communicator> communicator = nullptr;
};

/// Medians over the observed runs, in nanoseconds. transferNs: on the rank that waited least; ranks that come early
/// wait for it. exposedNs: the time in which no other step ran, on the rank where that took longest; hiddenNs: the rest
/// of the collective's time on that rank.
struct CollectiveTimes {
  double transferNs = 0.0;
  double exposedNs = 0.0;
  double hiddenNs = 0.0;
};

/// Makes the communicators of ranks whose memory is not the host's. Errors: those of Backend::join().
Result<void> joinRanks(RankTeam& team, std::vector<RankResources>& ranks, SumOrder order);
/// Ends them, all at once: libraries wait for the other ranks.
void partRanks(RankTeam& team, std::vector<RankResources>& ranks);

using ShardMap = std::map<std::string, Shard, std::less<>>;

/// The ranks begin each run together, and a run and its steps take as long as on the slowest of them. Cancelling takes
/// effect between runs, as a rank that stops alone would leave others waiting. Where ranks are processes, each of them
/// makes the same calls and gets the same results.
class RankedExecutor final : public TimedPlan {
 public:
  /// One executor a rank, each on its thread. Does not communicate. All arguments outlive it. Errors: as
  /// Executor::create(), of any rank.
  static Result<std::unique_ptr<RankedExecutor>> create(RankTeam& team, const std::vector<RankResources>& ranks,
                                                        const Plan& plan, const ShardMap& shards,
                                                        const ExecutorOptions& options = {});

  Result<bool> agree(bool decision) override;
  Result<RunOutcome> run(std::stop_token cancel = {}) override;
  Result<RunOutcome> runObserved(const StepObserver& observer, std::stop_token cancel = {}) override;
  StepClock clock() const override { return first().clock(); }
  bool hasDeviceClock() const override { return first().hasDeviceClock(); }
  const std::string& clockNote() const override { return first().clockNote(); }
  void giveUpTrace(const std::string& reason) override { m_executors[here()]->giveUpTrace(reason); }
  double runNs() const override { return slowest(&RankTimes::runNs); }
  double launchNs() const override { return slowest(&RankTimes::launchNs); }
  double observedNs() const override { return slowest(&RankTimes::observedNs); }
  const std::vector<DeviceActivity>& activities() const override { return first().activities(); }
  const std::vector<TimelineSpan>& launches() const override { return first().launches(); }
  const std::string& launching() const override { return first().launching(); }
  std::int64_t memoryBytes() const override;
  std::vector<std::string> ways(std::size_t step) const override { return first().ways(step); }
  std::int64_t launches(std::size_t step) const override { return first().launches(step); }
  Result<Tensor> read(std::string_view tensorName) const override;
  const Plan& plan() const override { return m_plan; }
  /// The tensor as each rank holds it; empty: the rank is another process. Does not communicate. Errors: as read().
  Result<std::vector<Tensor>> readShards(std::string_view tensorName) const;

  std::vector<TimelineSpan> rankSpans() const override;
  /// Median time of a step in the observed runs, by rank. Empty: it is not launched.
  std::vector<double> rankNs(std::size_t step) const;
  /// Times of a step that communicates, with its wait.
  CollectiveTimes collectiveTimes(std::size_t step) const;
  /// Bytes that each rank sends in a communication step.
  std::int64_t wireBytes(std::size_t step) const;

 private:
  RankedExecutor(RankTeam& team, const std::vector<RankResources>& ranks, const Plan& plan, const ShardMap& shards);
  Result<void> runAs(int rank, const std::function<Result<RunOutcome>(Executor&)>& action);
  struct StepTime {
    std::uint64_t step = 0;
    double startNs = 0.0;
    double durationNs = 0.0;
    double collectiveNs = 0.0;  // of the collective that it begins
  };
  struct RankTimes {
    double runNs = 0.0;
    double launchNs = 0.0;
    double observedNs = 0.0;
    std::int64_t memoryBytes = 0;
  };

  std::size_t here() const { return static_cast<std::size_t>(m_team.firstHere()); }
  const Executor& first() const { return *m_executors[here()]; }
  double slowest(double RankTimes::*time) const;
  void keepSamples(const StepObserver& observer);
  void noteCollectives(int rank);
  std::size_t waitFor(std::size_t step) const;
  /// After a rank's own run: its times, and where ranks are processes those of all.
  void gatherTimes(int rank);
  void gatherSteps(int rank);

  RankTeam& m_team;
  const std::vector<RankResources>& m_ranks;
  const Plan& m_plan;
  const ShardMap& m_shards;
  std::vector<std::unique_ptr<Executor>> m_executors;            // by rank; nullptr: of another process
  std::vector<RankTimes> m_times;                                // by rank
  std::vector<std::vector<StepTime>> m_observed;                 // by rank: of the last observed run
  std::vector<std::vector<std::vector<double>>> m_samples;       // by step, by rank: of all observed runs
  std::vector<std::vector<std::vector<double>>> m_collectiveNs;  // the same, of the collectives that steps begin
};

}  // namespace fuseline
