// RankedPipeline: a pipeline on several ranks: graphs, shards and backends of those that are in this process.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/analysis.h"
#include "core/runtime/ranked_executor.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace fuseline {

class RankedPipeline {
 public:
  /// backends: one for each rank; nullptr: of another process. `first`: the analysis of rank 0, which outlives it;
  /// analyzeRank(r): that of rank r. whole: a tensor for all that the whole model needs. own: this process is one of
  /// the ranks; nullptr: all ranks are threads of it. Errors (NoDevice): those of Backend::join().
  static Result<std::unique_ptr<RankedPipeline>> create(std::vector<std::shared_ptr<Backend>> backends,
                                                        const Analysis& first,
                                                        const std::function<Analysis(int rank)>& analyzeRank,
                                                        const NamedTensors& whole, SumOrder order,
                                                        std::shared_ptr<Communicator> own = nullptr,
                                                        const RankWatch& watch = {});
  /// Communicators of a device end together.
  ~RankedPipeline();
  RankedPipeline(const RankedPipeline&) = delete;
  RankedPipeline& operator=(const RankedPipeline&) = delete;

  Result<std::unique_ptr<RankedExecutor>> makeExecutor(const Plan& plan, const ExecutorOptions& options = {});

  int size() const { return m_team.size(); }
  bool areProcesses() const { return m_team.areProcesses(); }
  /// Is it a rank of this process?
  bool isHere(int rank) const { return m_team.isHere(rank); }
  /// Measures and writes what a run has once.
  bool hasRank0() const { return m_team.isHere(0); }
  /// Facts for run files.
  std::vector<std::pair<std::string, std::string>> details();

 private:
  RankedPipeline(int ranks, const Analysis& first, const RankWatch& watch) : m_first(first), m_team(ranks, watch) {}
  RankedPipeline(std::shared_ptr<Communicator> own, const Analysis& first) : m_first(first), m_team(std::move(own)) {}

  const Analysis& m_first;
  std::vector<std::unique_ptr<Graph>> m_graphs;  // of the ranks after the first
  std::vector<RankResources> m_ranks;
  RankTeam m_team;  // last: its threads end first
};

/// The tensors of one rank.
NamedTensors shardsOf(const NamedTensors& whole, const ShardMap& shards, int rank, int ranks);

}  // namespace fuseline
