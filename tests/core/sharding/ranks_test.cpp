// N ranks compute what one rank computes: random pipelines of column-, row- and sequence-parallel layers.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/collective_steps.h"
#include "core/runtime/bindings.h"
#include "core/runtime/ranked_pipeline.h"
#include "core/sharding/rank_graph.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/pipelines.h"
#include "tests/support/run_plan.h"

#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

constexpr std::int64_t kRows = 24;
constexpr std::int64_t kWidth = 48;

Link parallel(Link link, const char* mode, bool isSequenceParallel) {
  return with(with(std::move(link), "tensor_parallel_mode", std::string(mode)), "sequence_parallel",
              isSequenceParallel);
}

/// One to three blocks of a norm, a column-parallel layer, an activation and a row-parallel layer, in the forms that
/// pipelines write them in.
class RandomLayers {
 public:
  RandomLayers(std::uint64_t seed, bool isSequenceParallel)
      : m_random(seed), m_isSequenceParallel(isSequenceParallel) {}

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
    m_links.push_back(parallel(linear(isGate ? 2 * 72 : 72, id), "column", m_isSequenceParallel));
    if (pick(2) == 0) m_links.push_back(link("Bias", bias));
    m_links.push_back(link(kActivations[activation], id + "act"));
    if (pick(3) == 0) m_links.push_back(with(link("ConstantScale", id + "scale"), "scale", 0.5));
  }

  /// The basic op, or the parts of the composite Linear.
  void addRow(const std::string& id, const std::string& bias, const std::string& sum) {
    const bool isComposite = pick(2) == 0;
    m_links.push_back(parallel(linear(kWidth, id), isComposite ? "none" : "row", m_isSequenceParallel));
    if (pick(2) == 0) m_links.push_back(link("Bias", bias));
    if (isComposite) m_links.push_back(link(m_isSequenceParallel ? "ReduceScatter" : "AllReduce", sum));
  }

  std::mt19937_64 m_random;
  bool m_isSequenceParallel;
  std::vector<Link> m_links;
};

FusionReport reportOf(const Graph& graph, bool isFused, const std::shared_ptr<Backend>& backend) {
  if (!isFused) return unfused(graph);
  return *fuse(graph, {.capabilities = capabilitiesOf(backend)});
}

/// The whole tensors that N ranks compute together.
RunResults runOnRanks(const Graph& whole, int ranks, bool isFused, std::string& problem) {
  RunResults results;
  const std::shared_ptr<Backend> cpu = cpu::makeCpuBackend();
  const NamedTensors bindings = *makeBindings(whole, 1);
  std::vector<RankGraph> graphs;
  std::vector<RankResources> resources;
  for (int rank = 0; rank < ranks; ++rank) {
    Result<RankGraph> made = rankGraph(whole, rank, ranks);
    if (!made) {
      problem = made.error().message;
      return results;
    }
    graphs.push_back(std::move(*made));
  }
  for (int rank = 0; rank < ranks; ++rank)
    resources.push_back({cpu->shareOf(ranks), &graphs[static_cast<std::size_t>(rank)].graph,
                         shardsOf(bindings, graphs.front().shards, rank, ranks)});
  const Plan plan = makePlan(graphs.front().graph, reportOf(graphs.front().graph, isFused, cpu));
  RankTeam team(ranks);
  const auto executor = RankedExecutor::create(team, resources, plan, graphs.front().shards);
  problem = executor ? "" : executor.error().message;
  if (!executor) return results;
  if (const Result<RunOutcome> ran = (*executor)->run(); !ran) problem = ran.error().message;
  for (const PlanTensor& tensor : plan.tensors)
    if (isResult(tensor.role)) results[tensor.name] = (*executor)->read(tensor.name)->toDoubles();
  return results;
}

class Ranks : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }
  bool isFused() const { return std::get<1>(GetParam()); }
};

TEST_P(Ranks, ComputeWhatOneRankComputes) {
  for (const DType dtype : {DType::F32, DType::BF16})
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      const bool isSequenceParallel = seed % 2 == 0;
      const Graph whole = chain(dtype, {kRows, kWidth}, RandomLayers(seed, isSequenceParallel).make());
      const std::shared_ptr<Backend> cpu = cpu::makeCpuBackend();
      const RunResults expected = runPlan(whole, reportOf(whole, isFused(), cpu), cpu);
      std::string problem;
      const RunResults actual = runOnRanks(whole, ranks(), isFused(), problem);
      ASSERT_EQ(problem, "") << toString(whole);
      const std::string difference =
          dtype == DType::F32 ? firstDifference(actual, expected, 1e-4) : firstDifferenceInNorm(actual, expected, 3e-2);
      EXPECT_EQ(difference, "") << "seed " << seed << ", " << dtypeName(dtype) << "\n" << toString(whole);
    }
}

INSTANTIATE_TEST_SUITE_P(Counts, Ranks, ::testing::Combine(::testing::Values(2, 3, 4), ::testing::Bool()));

std::vector<std::string> collectivesOf(const Graph& whole, int ranks) {
  const RankGraph local = *rankGraph(whole, 0, ranks);
  std::vector<std::string> texts;
  for (const Step& step : makePlan(local.graph, unfused(local.graph)).steps)
    if (step.collective) texts.push_back(fmt::format("{} {} {}", phaseName(step.phase), step.name, step.kernel));
  return texts;
}

// TransformerEngine's BasicLinear, and the gradients of a norm's parameters, which a framework adds.
TEST(RankPlans, SequenceParallelLayersGatherTwiceAndScatterTwice) {
  const Graph whole = chain(DType::F32, {8, 8},
                            {link("LayerNorm", "norm"), parallel(linear(8, "fc1"), "column", true), link("GELU", "act"),
                             parallel(linear(8, "fc2"), "row", true)});
  EXPECT_EQ(
      collectivesOf(whole, 2),
      (std::vector<std::string>{"forward fc1.gather all-gather", "forward fc2.sum reduce-scatter",
                                "backward fc2.sum all-gather", "backward fc1.gather all-gather",
                                "backward fc1.gather reduce-scatter", "backward replicated_gradients all-reduce"}));
}

TEST(RankPlans, WithoutSequenceParallelismLayersAddUpOnceInEachPass) {
  const Graph whole = chain(DType::F32, {8, 8},
                            {link("LayerNorm", "norm"), parallel(linear(8, "fc1"), "column", false),
                             link("GELU", "act"), parallel(linear(8, "fc2"), "row", false)});
  EXPECT_EQ(collectivesOf(whole, 4),
            (std::vector<std::string>{"forward fc2.sum all-reduce", "backward fc1.sum_gradients all-reduce"}));
}

// Until backward gathers again, a rank keeps its own rows only.
TEST(RankPlans, GatheredRowsAreNotKeptForBackward) {
  const Graph whole = chain(DType::F32, {8, 64}, {link("GELU", "act"), parallel(linear(8, "fc1"), "column", true)});
  const RankGraph local = *rankGraph(whole, 0, 2);
  const Plan plan = makePlan(local.graph, unfused(local.graph));
  EXPECT_FALSE(plan.tensors[static_cast<std::size_t>(plan.findTensor("fc1.gather:y"))].isSaved);
  EXPECT_TRUE(plan.tensors[static_cast<std::size_t>(plan.findTensor("act:y"))].isSaved);
}

std::string refusal(const std::vector<Link>& links, int ranks = 2) {
  const Result<RankGraph> made = rankGraph(chain(DType::F32, {8, 8}, links), 0, ranks);
  return made ? "" : made.error().message;
}

TEST(Placements, RefuseWhatRanksCannotCompute) {
  EXPECT_EQ(refusal({parallel(linear(8, "a"), "column", false), link("LayerNorm", "norm")}),
            "norm: LayerNorm cannot work on a slice of its features on each rank: it needs whole rows. Put it before "
            "the column-parallel layer.");
  EXPECT_EQ(refusal({parallel(linear(8, "a"), "row", false), parallel(linear(8, "b"), "row", false)}),
            "b: it needs a slice of its features on each rank of a.y, but a needs all of it on every rank. Put a "
            "column-parallel layer before a row-parallel one, or set its tensor_parallel_mode to column.");
  EXPECT_EQ(refusal({parallel(linear(10, "a"), "column", false)}, 4),
            "a: out_features is 10, which 4 ranks cannot share equally; it must be a multiple of 4.");
  EXPECT_EQ(refusal({parallel(linear(8, "a"), "column", true)}, 3),
            "x: axis 0 of [8, 8] has 8 elements, which 3 ranks cannot share equally; it must be a multiple of 3.");
}

// TransformerEngine's backward of AllGather adds the gradients of all ranks, also where these are the same.
TEST(Placements, SayThatGradientsOfAGatherAreAddedUp) {
  const Graph whole = chain(DType::F32, {8, 8}, {link("GELU", "act"), link("AllGather", "gather")});
  EXPECT_EQ(rankGraph(whole, 0, 2)->notes.size(), 1u);
}

// A gate reads the halves of a row: rank r needs share r of each.
TEST(Placements, SharesOfAGateConsistOfBothHalves) {
  const Graph whole = chain(DType::F32, {8, 8}, {parallel(linear(24, "fc"), "column", false), link("SwiGLU", "act")});
  const RankGraph local = *rankGraph(whole, 1, 3);
  EXPECT_EQ(local.shardOf("fc.weight"), (Shard{.kind = Shard::Kind::Slice, .axis = 0, .parts = 2}));
  const std::vector<double> rows = {0, 1, 2, 3, 4, 5};
  const Tensor tensor = Tensor::fromDoubles({DType::F32, {6, 1}}, rows);
  const Shard shard{.kind = Shard::Kind::Slice, .axis = 0, .parts = 2};
  EXPECT_EQ(shardOf(tensor, shard, 1, 3).toDoubles(), (std::vector<double>{1, 4}));
  std::vector<Tensor> parts;
  for (int rank = 0; rank < 3; ++rank) parts.push_back(shardOf(tensor, shard, rank, 3));
  EXPECT_EQ(wholeOf(parts, shard).toDoubles(), rows);
}

TEST(RankTeam, ARankThatFailsIsNamedAndEndsTheOthers) {
  RankTeam team(3);
  const Result<void> ran = team.run([&](int rank) -> Result<void> {
    if (rank == 1) return Error{"fc2.linear (forward): no memory.", ErrorKind::RunFailed};
    team.communicator(rank).barrier();
    return {};
  });
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().message, "rank 1 of 3: fc2.linear (forward): no memory.");
  EXPECT_EQ(ran.error().kind, ErrorKind::RunFailed);
}

}  // namespace
}  // namespace fuseline::testing
