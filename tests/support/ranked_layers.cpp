// Makes random layers, and runs them.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/ranked_layers.h"

#include "core/runtime/bindings.h"
#include "core/runtime/plan_memory.h"
#include "core/sharding/rank_graph.h"
#include "tests/support/recipes.h"

#include <algorithm>
#include <random>
#include <utility>

#include <fmt/format.h>

namespace fuseline::testing {

namespace {

class RandomLayers {
 public:
  RandomLayers(std::uint64_t seed, bool isSequenceParallel, std::int64_t width, std::int64_t hidden)
      : m_random(seed), m_isSequenceParallel(isSequenceParallel), m_width(width), m_hidden(hidden) {}

  std::vector<Link> make() {
    const int numBlocks = 1 + pick(2);
    for (int block = 0; block < numBlocks; ++block) addBlock(block);
    return m_links;
  }

 private:
  int pick(int count) { return std::uniform_int_distribution<int>(0, count - 1)(m_random); }

  void addBlock(int block) {
    const auto id = [&](const char* name) { return fmt::format("{}{}", name, block); };
    const bool isResidual = pick(2) == 0;
    if (isResidual) m_links.push_back(link("MakeExtraOutput", id("save")));
    constexpr const char* kNorms[] = {"LayerNorm", "RMSNorm", "L2Normalization", "GELU"};
    m_links.push_back(link(kNorms[pick(4)], id("norm")));
    addColumn(id("up"), id("upbias"));
    addRow(id("down"), id("downbias"), id("sum"));
    if (pick(3) == 0) m_links.push_back(with(link("Dropout", id("drop")), "p", 0.25));
    if (isResidual) m_links.push_back(link("AddExtraInput", id("add"), id("save") + ".extra"));
  }

  void addColumn(const std::string& id, const std::string& bias) {
    constexpr const char* kActivations[] = {"GELU", "ReLU", "SwiGLU", "GEGLU", "SiLU"};
    const int activation = pick(5);
    const bool isGate = activation == 2 || activation == 3;
    m_links.push_back(parallel(linear(isGate ? 2 * m_hidden : m_hidden, id), "column", m_isSequenceParallel));
    if (pick(2) == 0) m_links.push_back(link("Bias", bias));
    m_links.push_back(link(kActivations[activation], id + "act"));
    if (pick(3) == 0) m_links.push_back(with(link("ConstantScale", id + "scale"), "scale", 0.5));
  }

  /// The basic op, or the parts of the composite Linear.
  void addRow(const std::string& id, const std::string& bias, const std::string& sum) {
    const bool isComposite = pick(2) == 0;
    m_links.push_back(parallel(linear(m_width, id), isComposite ? "none" : "row", m_isSequenceParallel));
    if (pick(2) == 0) m_links.push_back(link("Bias", bias));
    if (isComposite) m_links.push_back(link(m_isSequenceParallel ? "ReduceScatter" : "AllReduce", sum));
  }

  std::mt19937_64 m_random;
  bool m_isSequenceParallel;
  std::int64_t m_width;
  std::int64_t m_hidden;
  std::vector<Link> m_links;
};

/// The graphs of the ranks. Errors: those of rankGraph().
Result<std::vector<RankGraph>> graphsOf(const Graph& whole, int ranks, const std::optional<Recipe>& recipe) {
  std::vector<RankGraph> graphs;
  for (int rank = 0; rank < ranks; ++rank) {
    Result<RankGraph> made = rankGraph(whole, rank, ranks);
    if (!made) return made.error();
    if (recipe) made->graph = under(*recipe, std::move(made->graph));
    graphs.push_back(std::move(*made));
  }
  return graphs;
}

Graph quantized(const Graph& whole, const RankedRunOptions& options) {
  return options.recipe ? under(*options.recipe, whole) : whole;
}

/// An optimizer changes the parameters.
bool isCompared(TensorRole role, const Plan& plan) {
  const bool isTrained = std::ranges::count(plan.tensors, TensorRole::OptimizerState, &PlanTensor::role) > 0;
  return isResult(role) || role == TensorRole::QuantizerState ||
         (isTrained && (role == TensorRole::OptimizerState || role == TensorRole::Parameter));
}

void run(TimedPlan& executor, int runs, RankedRun& made) {
  for (int i = 0; i < runs && made.problem.empty(); ++i)
    if (const Result<RunOutcome> ran = executor.run(); !ran) made.problem = ran.error().message;
  made.launching = executor.launching();
  for (const PlanTensor& tensor : executor.plan().tensors) {
    if (!made.problem.empty() || !isCompared(tensor.role, executor.plan())) continue;
    const Result<Tensor> read = executor.read(tensor.name);
    if (read)
      made.results[tensor.name] = read->toDoubles();
    else
      made.problem = read.error().message;
  }
}

}  // namespace

Link parallel(Link link, const char* mode, bool isSequenceParallel) {
  return with(with(std::move(link), "tensor_parallel_mode", std::string(mode)), "sequence_parallel",
              isSequenceParallel);
}

std::vector<Link> randomParallelLayers(std::uint64_t seed, bool isSequenceParallel, std::int64_t width,
                                       std::int64_t hidden) {
  return RandomLayers(seed, isSequenceParallel, width, hidden).make();
}

FusionReport reportOf(const Graph& graph, bool isFused, const std::shared_ptr<Backend>& backend) {
  if (!isFused) return unfused(graph);
  return *fuse(graph, {.capabilities = capabilitiesOf(backend)});
}

RankedRun runOnOneRank(const Graph& whole, const std::shared_ptr<Backend>& backend, const RankedRunOptions& options) {
  const Graph graph = quantized(whole, options);
  const Plan plan = makePlan(graph, reportOf(graph, options.isFused, backend));
  const auto executor = Executor::create(backend, graph, plan, *makeBindings(graph, 1));
  RankedRun made;
  if (executor)
    run(**executor, options.numRuns, made);
  else
    made.problem = executor.error().message;
  return made;
}

RankedRun runOnRanks(const Graph& whole, const std::vector<std::shared_ptr<Backend>>& backends,
                     const RankedRunOptions& options) {
  RankedRun made;
  const auto ranks = static_cast<int>(backends.size());
  const Result<std::vector<RankGraph>> graphs = graphsOf(whole, ranks, options.recipe);
  if (!graphs) {
    made.problem = graphs.error().message;
    return made;
  }
  const NamedTensors bindings = *makeBindings(quantized(whole, options), 1);
  const RankGraph& first = graphs->front();
  std::vector<RankResources> resources;
  for (int rank = 0; rank < ranks; ++rank)
    resources.push_back({backends[static_cast<std::size_t>(rank)], &(*graphs)[static_cast<std::size_t>(rank)].graph,
                         shardsOf(bindings, first.shards, rank, ranks)});
  const Plan plan = makePlan(first.graph, reportOf(first.graph, options.isFused, backends.front()),
                             {.overlapsCollectives = options.overlaps, .chunks = options.chunks});
  RankTeam team(ranks, options.watch);
  if (const Result<void> joined = joinRanks(team, resources, options.order); !joined)
    made.problem = joined.error().message;
  if (made.problem.empty()) {
    if (resources.front().communicator) made.details = resources.front().communicator->details();
    const auto executor = RankedExecutor::create(team, resources, plan, first.shards);
    if (executor)
      run(**executor, options.numRuns, made);
    else
      made.problem = executor.error().message;
  }
  partRanks(team, resources);
  return made;
}

}  // namespace fuseline::testing
