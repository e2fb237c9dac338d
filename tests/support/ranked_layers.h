// Random pipelines of column-, row- and sequence-parallel layers, and their runs on several ranks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/ranked_pipeline.h"
#include "tests/support/pipelines.h"
#include "tests/support/run_plan.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fuseline::testing {

Link parallel(Link link, const char* mode, bool isSequenceParallel);

/// One to three blocks of a norm, a column-parallel layer, an activation and a row-parallel layer, in the forms in
/// which pipelines write them. width: of x; hidden: of the layer between, for each half of a gate.
std::vector<Link> randomParallelLayers(std::uint64_t seed, bool isSequenceParallel, std::int64_t width,
                                       std::int64_t hidden);

FusionReport reportOf(const Graph& graph, bool isFused, const std::shared_ptr<Backend>& backend);

struct RankedRunOptions {
  bool isFused = true;
  SumOrder order = SumOrder::Library;
  std::optional<Recipe> recipe = std::nullopt;
  int numRuns = 1;
  RankWatch watch = {};
  bool overlaps = true;
  int chunks = 1;
};

/// The results of all ranks together: whole outputs and gradients, what an optimizer updates, and the states of
/// quantizers, which are the same on all ranks. problem: why a run failed.
struct RankedRun {
  RunResults results;
  std::string problem;
  std::string launching;
  std::vector<std::pair<std::string, std::string>> details;  // of rank 0
};

/// The same of one rank.
RankedRun runOnOneRank(const Graph& whole, const std::shared_ptr<Backend>& backend, const RankedRunOptions& options);

/// backends: one for each rank. whole: without the recipe.
RankedRun runOnRanks(const Graph& whole, const std::vector<std::shared_ptr<Backend>>& backends,
                     const RankedRunOptions& options = {});

}  // namespace fuseline::testing
