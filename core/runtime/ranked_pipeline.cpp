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

Result<std::unique_ptr<RankedPipeline>> RankedPipeline::create(const std::shared_ptr<Backend>& device, int ranks,
                                                               const Analysis& first,
                                                               const std::function<Analysis(int rank)>& analyzeRank,
                                                               const NamedTensors& whole,
                                                               std::shared_ptr<Communicator> own, int ranksOfMachine) {
  const int sharing = own ? ranksOfMachine : ranks;
  std::unique_ptr<RankedPipeline> pipeline(own ? new RankedPipeline(std::move(own), first)
                                               : new RankedPipeline(ranks, first));
  for (int rank = 0; rank < ranks; ++rank) {
    if (!pipeline->m_team.isHere(rank)) {
      pipeline->m_ranks.emplace_back();
      continue;
    }
    std::shared_ptr<Backend> backend = device->hasHostMemory() ? device->shareOf(sharing) : nullptr;
    if (!backend)
      return Error{
          fmt::format("--ranks {}: {} runs one rank. Use --device cpu, or fuse and explain with --ranks, which "
                      "plan for several.",
                      ranks, device->device().id),
          ErrorKind::NoDevice};
    const Graph* graph = &first.graph();
    if (rank > 0) {
      pipeline->m_graphs.push_back(std::make_unique<Graph>(analyzeRank(rank).lowered.graph));
      graph = pipeline->m_graphs.back().get();
    }
    pipeline->m_ranks.push_back({std::move(backend), graph, shardsOf(whole, first.shards, rank, ranks)});
  }
  return pipeline;
}

Result<std::unique_ptr<RankedExecutor>> RankedPipeline::makeExecutor(const Plan& plan, const ExecutorOptions& options) {
  return RankedExecutor::create(m_team, m_ranks, plan, m_first.shards, options);
}

std::vector<std::pair<std::string, std::string>> RankedPipeline::details() {
  std::vector<std::pair<std::string, std::string>> facts = {
      {"ranks", fmt::format("{}, as {}", size(), areProcesses() ? "processes" : "threads of this process")},
      {"device of a rank", m_ranks[static_cast<std::size_t>(m_team.firstHere())].backend->device().name}};
  for (auto& fact : m_team.communicator(m_team.firstHere()).details()) facts.push_back(std::move(fact));
  return facts;
}

}  // namespace fuseline
