// Analysis: document to plan in one call. Pure, so that the window can run it on a snapshot on any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"
#include "core/lowering/lowering.h"
#include "core/plan/lazy_plan.h"
#include "core/plan/plan.h"
#include "core/sharding/rank_graph.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// Code of diagnostics about the tensors that ranks share.
inline constexpr const char* kPlacementCode = "placement";
/// Code of the note that attention stays in high precision.
inline constexpr const char* kAttentionCode = "recipe-attention";

/// One of several ranks that run a pipeline together.
struct RankPlace {
  int rank = 0;
  int ranks = 1;
  /// See PlanOptions.
  bool overlapsCollectives = true;
  int chunks = 1;
};

struct AnalysisOptions {
  LoweringOptions lowering;
  /// book and switches are combined with the document's own "fusion" section: an option given here wins for the
  /// book, the switches add up.
  std::optional<RuleBook> book;
  RuleSwitches switches;
  Capabilities capabilities;
  /// Replaces the document's own.
  std::optional<Recipe> recipe = std::nullopt;
  GainModel gains;
  /// See FusionTarget.
  std::optional<ComputeCapability> capability = std::nullopt;
  std::int64_t ranks = 1;
  /// The plans are those of this rank, with its shapes and the communication; `ranks` above plans whole layers.
  RankPlace place = {};
};

/// Architectures that pipelines can be planned for without such a GPU: "sm_80" to "sm_120".
std::span<const std::string_view> plannedArchitectures();

/// The rule set that the document's "fusion" section chooses: all rules where it names none.
RuleBook documentBook(const PipelineDocument& document);

/// Kernels for planning an architecture: those of the CUDA backend, and those of fusions that need certain hardware,
/// which no backend has yet. Empty stays empty: every kernel is assumed to exist.
Capabilities plannedCapabilities(Capabilities cuda);

struct Analysis {
  LoweredGraph lowered;
  /// The recipe that the graph was given; none: high precision.
  std::optional<Recipe> recipe = std::nullopt;
  /// For a pipeline with an error: nothing is fused, and nothing was attempted.
  FusionReport report;
  /// Present exactly if the graph has no error. Shared with analyses of other documents for which they hold, too.
  std::shared_ptr<const Plan> fusedPlan;
  std::shared_ptr<const LazyPlan> withoutFusions;
  /// The whole model, and how the ranks share its tensors, if the plans are those of one of several ranks.
  std::optional<Graph> wholeGraph = std::nullopt;
  int ranks = 1;  // of which the graph is one's
  std::map<std::string, Shard, std::less<>> shards = {};

  const Graph& graph() const { return lowered.graph; }
  /// The graph of the document, with the sizes written there: edits read it, whatever part of it one rank runs.
  const Graph& documentGraph() const { return wholeGraph ? *wholeGraph : lowered.graph; }
  /// Only if isRunnable(). Any thread may call it; the first call makes the plan.
  const Plan& unfusedPlan() const { return withoutFusions->of(graph()); }
  bool isRunnable() const { return fusedPlan != nullptr; }
};

/// The recipe that a document is analyzed with: the chosen one, else its own, else "None".
std::string recipeName(const PipelineDocument& document, const std::optional<Recipe>& chosen);
/// The same with its fields and overrides, as runs record it; null: there is none, or it cannot be read.
Json wholeRecipe(const PipelineDocument& document, const std::optional<Recipe>& chosen);

/// A switch that names no rule becomes a diagnostic.
Analysis analyze(const PipelineDocument& document, const AnalysisOptions& options = {},
                 const SourceMap* sourceMap = nullptr);

}  // namespace fuseline
