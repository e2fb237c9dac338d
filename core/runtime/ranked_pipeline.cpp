// Gives every rank its part of a pipeline.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/ranked_pipeline.h"

#include "core/runtime/bindings.h"

#include <fmt/format.h>

namespace fuseline {

NamedTensors shardsOf(const NamedTensors& whole, const ShardMap& shards, int rank, int ranks) {
  NamedTensors parts;
  for (const auto& [name, tensor] : whole) {
    const auto shard = shards.find(name);
    parts.emplace_back(name, shard == shards.end() ? tensor : shardOf(tensor, shard->second, rank, ranks));
  }
  return parts;
}

Result<std::unique_ptr<RankedPipeline>> RankedPipeline::create(std::vector<std::shared_ptr<Backend>> backends,
                                                               const Analysis& first,
                                                               const std::function<Analysis(int rank)>& analyzeRank,
                                                               const NamedTensors& whole, SumOrder order,
                                                               std::shared_ptr<Communicator> own,
                                                               const RankWatch& watch) {
  const auto ranks = static_cast<int>(backends.size());
  std::unique_ptr<RankedPipeline> pipeline(own ? new RankedPipeline(std::move(own), first)
                                               : new RankedPipeline(ranks, first, watch));
  for (int rank = 0; rank < ranks; ++rank) {
    if (!pipeline->m_team.isHere(rank)) {
      pipeline->m_ranks.emplace_back();
      continue;
    }
    const Graph* graph = &first.graph();
    if (rank > 0) {
      pipeline->m_graphs.push_back(std::make_unique<Graph>(analyzeRank(rank).lowered.graph));
      graph = pipeline->m_graphs.back().get();
    }
    pipeline->m_ranks.push_back(
        {std::move(backends[static_cast<std::size_t>(rank)]), graph, shardsOf(whole, first.shards, rank, ranks)});
  }
  if (Result<void> joined = joinRanks(pipeline->m_team, pipeline->m_ranks, order); !joined) return joined.error();
  return pipeline;
}

RankedPipeline::~RankedPipeline() { partRanks(m_team, m_ranks); }

Result<std::unique_ptr<RankedExecutor>> RankedPipeline::makeExecutor(const Plan& plan, const ExecutorOptions& options) {
  return RankedExecutor::create(m_team, m_ranks, plan, m_first.shards, options);
}

std::vector<std::pair<std::string, std::string>> RankedPipeline::details() {
  const int rank = m_team.firstHere();
  const RankResources& first = m_ranks[static_cast<std::size_t>(rank)];
  const Communicator& communicator = first.communicator ? *first.communicator : m_team.communicator(rank);
  std::vector<std::pair<std::string, std::string>> facts = {
      {"ranks", fmt::format("{}, as {}", size(), areProcesses() ? "processes" : "threads of this process")},
      {"device of a rank", first.backend->device().name}};
  for (auto& fact : communicator.details()) facts.push_back(std::move(fact));
  return facts;
}

}  // namespace fuseline
