// N ranks compute what one rank computes: random pipelines of column-, row- and sequence-parallel layers.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/collectives/collective_steps.h"
#include "core/quant/apply_recipe.h"
#include "core/runtime/launcher.h"
#include "core/runtime/ranked_pipeline.h"
#include "core/sharding/rank_graph.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/pipelines.h"
#include "tests/support/ranked_layers.h"
#include "tests/support/recipes.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

constexpr std::int64_t kRows = 24;
constexpr std::int64_t kWidth = 48;
constexpr std::int64_t kHidden = 72;

std::vector<std::shared_ptr<Backend>> sharesOfCpu(int ranks) {
  const std::shared_ptr<Backend> cpu = cpu::makeCpuBackend();
  std::vector<std::shared_ptr<Backend>> shares;
  for (int rank = 0; rank < ranks; ++rank) shares.push_back(cpu->shareOf(ranks));
  return shares;
}

class Ranks : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }
  bool isFused() const { return std::get<1>(GetParam()); }
};

TEST_P(Ranks, ComputeWhatOneRankComputes) {
  for (const DType dtype : kFloatTypes)
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      const bool isSequenceParallel = seed % 2 == 0;
      const Graph whole =
          chain(dtype, {kRows, kWidth}, randomParallelLayers(seed, isSequenceParallel, kWidth, kHidden));
      const std::shared_ptr<Backend> cpu = cpu::makeCpuBackend();
      const RunResults expected = runPlan(whole, reportOf(whole, isFused(), cpu), cpu);
      const RankedRun actual = runOnRanks(whole, sharesOfCpu(ranks()), {.isFused = isFused()});
      ASSERT_EQ(actual.problem, "") << toString(whole);
      const std::string difference = dtype == DType::F32 ? firstDifference(actual.results, expected, 1e-4)
                                                         : firstDifferenceInNorm(actual.results, expected, 3e-2);
      EXPECT_EQ(difference, "") << "seed " << seed << ", " << dtypeName(dtype) << "\n" << toString(whole);
    }
}

INSTANTIATE_TEST_SUITE_P(Counts, Ranks, ::testing::Combine(::testing::Values(2, 3, 4), ::testing::Bool()));

/// A layer has whole blocks of 128 on every rank: no recipe falls back to high precision.
Graph quantizableLayers(int ranks, std::uint64_t seed, bool isSequenceParallel) {
  constexpr std::int64_t kBlock = 128;
  return chain(DType::BF16, {kBlock * ranks, kBlock},
               randomParallelLayers(seed, isSequenceParallel, kBlock, kBlock * ranks));
}

class RankedRecipes : public ::testing::TestWithParam<std::tuple<const RecipeDefinition*, int>> {
 protected:
  std::string name() const { return std::get<0>(GetParam())->name; }
  int ranks() const { return std::get<1>(GetParam()); }
};

// Shards of weights have scales of their own, as in TransformerEngine: results differ by the errors of the formats.
TEST_P(RankedRecipes, ComputeWhatOneRankComputes) {
  const Recipe chosen = recipe(name());
  const double tolerance = name() == "NVFP4BlockScaling" ? 0.4 : 0.12;
  const std::shared_ptr<Backend> cpu = cpu::makeCpuBackend();
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    const Graph whole = quantizableLayers(ranks(), seed, seed == 0);
    const RankedRunOptions options{.isFused = (seed + static_cast<std::uint64_t>(ranks())) % 2 == 0, .recipe = chosen};
    const RankedRun one = runOnOneRank(whole, cpu, options);
    const RankedRun several = runOnRanks(whole, sharesOfCpu(ranks()), options);
    ASSERT_EQ(one.problem + several.problem, "") << toString(whole);
    EXPECT_EQ(firstDifferenceInNorm(several.results, one.results, tolerance), "") << toString(whole);
  }
}

INSTANTIATE_TEST_SUITE_P(Recipes, RankedRecipes,
                         ::testing::Combine(::testing::ValuesIn(quantizingRecipes()), ::testing::Values(2, 3, 4)),
                         [](const auto& given) {
                           return std::get<0>(given.param)->name + std::to_string(std::get<1>(given.param));
                         });

/// The amax histories after some runs, of the first rank.
RunResults amaxesOf(const RankedRun& run) {
  RunResults states;
  for (const auto& [name, values] : run.results)
    if (name.ends_with(".amax_history")) states[name] = values;
  return states;
}

RunResults amaxesAfterThreeRuns(const Graph& whole, int ranks, bool reduces) {
  Attributes fields;
  fields.set("reduce_amax", reduces);
  const RankedRunOptions options{.recipe = recipe("DelayedScaling", fields), .numRuns = 3};
  const RankedRun run =
      ranks > 1 ? runOnRanks(whole, sharesOfCpu(ranks), options) : runOnOneRank(whole, cpu::makeCpuBackend(), options);
  EXPECT_EQ(run.problem, "");
  return amaxesOf(run);
}

// TransformerEngine: each rank has the scales of the whole tensors. Without reduce_amax it has those of its shards.
TEST(RankedRecipes, DelayedScalesAreThoseOfWholeTensors) {
  constexpr int kRanks = 3;
  constexpr double kTolerance = 3e-2;  // sums are rounded to bf16, and then to FP8, in another order
  int numDifferent = 0;
  for (const std::uint64_t seed : {1, 3, 5}) {
    const Graph whole = quantizableLayers(kRanks, seed, false);
    const RunResults expected = amaxesAfterThreeRuns(whole, 1, true);
    ASSERT_GE(expected.size(), 6u);  // inputs, weights and gradients of two layers
    EXPECT_EQ(firstDifference(amaxesAfterThreeRuns(whole, kRanks, true), expected, kTolerance), "");
    numDifferent += firstDifference(amaxesAfterThreeRuns(whole, kRanks, false), expected, kTolerance).empty() ? 0 : 1;
  }
  EXPECT_GT(numDifferent, 0);
}

/// Each rank has the whole gradient of the first bias, which rank 0 alone adds and updates.
TEST(Ranks, UpdateABiasThatTheyAddUpOnce) {
  constexpr int kRanks = 2;
  const Graph whole = chain(DType::F32, {8, 8},
                            {parallel(linear(16, "up"), "column", false), linear(8, "down"), link("Bias", "bias"),
                             link("AllReduce", "sum"), link("Bias", "after")})
                          .withOptimizer(AdamW{.lr = 0.1, .maxGradNorm = 0.5});
  for (const std::shared_ptr<Backend>& backend : {cpu::makeCpuBackend(), makeReferenceBackend()}) {
    const RankedRun one = runOnOneRank(whole, backend, {.numRuns = 4});
    const RankedRun several = runOnRanks(whole, {backend->shareOf(kRanks), backend->shareOf(kRanks)}, {.numRuns = 4});
    ASSERT_EQ(one.problem + several.problem, "");
    ASSERT_TRUE(one.results.contains("bias.bias") && one.results.contains("bias.bias.exp_avg"));
    EXPECT_EQ(firstDifference(several.results, one.results, 1e-4), "") << backend->device().id;
  }
}

std::vector<std::string> collectivesOf(const Graph& whole, int ranks) {
  const RankGraph local = *rankGraph(whole, 0, ranks);
  std::vector<std::string> texts;
  for (const Step& step : makePlan(local.graph, unfused(local.graph)).steps)
    if (step.collective && !step.collective->isWait())
      texts.push_back(fmt::format("{} {} {}", phaseName(step.phase), step.name, step.kernel));
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

std::vector<std::string> backwardOf(const Graph& whole, bool overlaps) {
  const RankGraph local = *rankGraph(whole, 0, 2);
  std::vector<std::string> names;
  for (const Step& step : makePlan(local.graph, unfused(local.graph), {.overlapsCollectives = overlaps}).steps)
    if (step.phase == Phase::Backward && step.isLaunched()) names.push_back(step.name + " " + step.kernel);
  return names;
}

// TransformerEngine's BasicLinear: a column-parallel layer gathers its input beside dgrad, which is sent beside wgrad;
// a row-parallel layer waits for its communication.
TEST(RankPlans, CommunicationOfColumnParallelLayersTakesPlaceBesideTheirGemms) {
  using Names = std::vector<std::string>;
  const auto layers = [](bool isSequenceParallel) {
    return chain(DType::F32, {8, 8},
                 {link("GELU", "act"), parallel(linear(8, "fc1"), "column", isSequenceParallel), link("GELU", "mid"),
                  parallel(linear(8, "fc2"), "row", isSequenceParallel)});
  };
  EXPECT_EQ(backwardOf(layers(true), true),
            (Names{"fc2.sum all-gather", "fc2 BasicLinear", "mid elementwise", "fc1.gather all-gather",
                   "fc1 BasicLinear", "fc1.gather (wait) all-gather_wait", "fc1.gather reduce-scatter",
                   "fc1 (wgrad) BasicLinear", "fc1.gather (wait) reduce-scatter_wait", "act elementwise"}));
  EXPECT_EQ(backwardOf(layers(false), true),
            (Names{"fc2 BasicLinear", "mid elementwise", "fc1 BasicLinear", "fc1.sum_gradients all-reduce",
                   "fc1 (wgrad) BasicLinear", "fc1.sum_gradients (wait) all-reduce_wait", "act elementwise"}));
  EXPECT_EQ(backwardOf(layers(true), false),
            (Names{"fc2.sum all-gather", "fc2 BasicLinear", "mid elementwise", "fc1.gather all-gather",
                   "fc1 BasicLinear", "fc1.gather reduce-scatter", "act elementwise"}));
}

/// Sent and received tensors keep their memory until the wait.
TEST(RankPlans, NothingWritesTheTensorsOfACollectiveBesideIt) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Graph whole = chain(DType::F32, {24, 48}, randomParallelLayers(seed, seed % 2 == 0, 48, 72));
    const RankGraph local = *rankGraph(whole, 0, 2);
    const Plan plan = makePlan(local.graph, *fuse(local.graph, {}));
    const auto placeOf = [&](const StepOperand& operand) {
      return plan.storages[static_cast<std::size_t>(plan.tensors[static_cast<std::size_t>(operand.tensor)].storage)];
    };
    const Step* begun = nullptr;
    for (const Step& step : plan.steps) {
      if (!begun && step.collective && step.collective->half == CollectiveWork::Half::Begin) {
        begun = &step;
        continue;
      }
      if (!begun || step.isView) continue;
      if (step.collective) {
        ASSERT_TRUE(step.collective->isWait()) << step.name;
        begun = nullptr;
        continue;
      }
      for (const StepOperand& used : step.operands)
        for (const StepOperand& busy : begun->operands) {
          const auto [mine, theirs] = std::pair(placeOf(used), placeOf(busy));
          const bool isApart =
              mine.isOnHost || mine.offset + mine.bytes <= theirs.offset || theirs.offset + theirs.bytes <= mine.offset;
          const bool onlyReads = used.access == OperandAccess::Read && busy.access == OperandAccess::Read;
          EXPECT_TRUE(isApart || onlyReads) << begun->name << " beside " << step.name << ", seed " << seed;
        }
    }
    EXPECT_EQ(begun, nullptr);
  }
}

TEST(Ranks, BitsDoNotDependOnWhatCommunicationRunsBeside) {
  for (const DType dtype : {DType::F32, DType::BF16})
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      const Graph whole = chain(dtype, {kRows, kWidth}, randomParallelLayers(seed, seed % 2 == 0, kWidth, kHidden));
      const RankedRun beside = runOnRanks(whole, sharesOfCpu(2), {.isFused = seed % 3 != 0});
      const RankedRun alone = runOnRanks(whole, sharesOfCpu(2), {.isFused = seed % 3 != 0, .overlaps = false});
      ASSERT_EQ(beside.problem + alone.problem, "");
      EXPECT_EQ(beside.results, alone.results) << "seed " << seed << ", " << dtypeName(dtype);
    }
}

std::vector<std::string> stepsInChunks(const Graph& whole, Phase phase) {
  const RankGraph local = *rankGraph(whole, 0, 2);
  std::vector<std::string> names;
  for (const Step& step : makePlan(local.graph, unfused(local.graph), {.chunks = 2}).steps)
    if (step.phase == phase && step.isLaunched()) names.push_back(step.name);
  return names;
}

// TransformerEngine's Userbuffers: x is gathered, and y scattered, beside the GEMM; dy is gathered beside dgrad.
TEST(RankPlans, ChunksOfCollectivesAreBesidePiecesOfGemms) {
  using Names = std::vector<std::string>;
  const Graph column = chain(DType::F32, {8, 8}, {link("GELU", "act"), parallel(linear(8, "fc1"), "column", true)});
  EXPECT_EQ(stepsInChunks(column, Phase::Forward),
            (Names{"act", "fc1.gather [1/2]", "fc1.gather [2/2]", "fc1 [1/4]", "fc1 [2/4]", "fc1.gather [2/2] (wait)",
                   "fc1 [3/4]", "fc1 [4/4]"}));
  const Graph row = chain(DType::F32, {8, 8}, {link("GELU", "act"), parallel(linear(8, "fc2"), "row", true)});
  EXPECT_EQ(stepsInChunks(row, Phase::Forward), (Names{"act", "fc2 [1/4]", "fc2 [2/4]", "fc2.sum [1/2]", "fc2 [3/4]",
                                                       "fc2 [4/4]", "fc2.sum [1/2] (wait)", "fc2.sum [2/2]"}));
  EXPECT_EQ(stepsInChunks(row, Phase::Backward),
            (Names{"fc2.sum [1/2]", "fc2.sum [2/2]", "fc2 [1/4]", "fc2 [2/4]", "fc2.sum [2/2] (wait)", "fc2 [3/4]",
                   "fc2 [4/4]", "fc2 (wgrad)", "act"}));
}

TEST(Ranks, ComputeTheSameBitsInChunks) {
  for (const std::shared_ptr<Backend>& backend : {cpu::makeCpuBackend(), makeReferenceBackend()})
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const int ranks = 2 + static_cast<int>(seed) % 3;
      const DType dtype = kFloatTypes[seed % std::size(kFloatTypes)];
      const Graph whole = chain(dtype, {2 * kRows, kWidth}, randomParallelLayers(2 * seed, true, kWidth, kHidden));
      const auto run = [&](int chunks) {
        std::vector<std::shared_ptr<Backend>> shares;
        for (int rank = 0; rank < ranks; ++rank) shares.push_back(backend->shareOf(ranks));
        return runOnRanks(whole, shares, {.isFused = seed % 2 == 0, .chunks = chunks});
      };
      const RankedRun atOnce = run(1);
      for (const int chunks : {2, 4}) {
        const RankedRun inChunks = run(chunks);
        ASSERT_EQ(inChunks.problem + atOnce.problem, "");
        EXPECT_EQ(firstDifference(inChunks.results, atOnce.results, 0.0), "")
            << "seed " << seed << ", " << chunks << " chunks, " << backend->device().id << "\n"
            << toString(whole);
      }
    }
}

/// Gathered values and their scales, of blocks and of whole tensors, and what steps quantize of their results.
class RecipesInChunks : public ::testing::TestWithParam<std::tuple<const RecipeDefinition*, int>> {
 protected:
  std::string name() const { return std::get<0>(GetParam())->name; }
  int ranks() const { return std::get<1>(GetParam()); }
};

TEST_P(RecipesInChunks, ComputeTheSameBits) {
  for (const std::shared_ptr<Backend>& backend : {cpu::makeCpuBackend(), makeReferenceBackend()})
    for (const bool isFused : {false, true}) {
      const auto seed = static_cast<std::uint64_t>(ranks()) + (isFused ? 4 : 0);
      const DType dtype = seed % 2 == 0 ? DType::BF16 : DType::F32;
      const Graph whole = chain(dtype, {256 * ranks(), 128}, randomParallelLayers(2 * seed, true, 128, 128 * ranks()),
                                {.pass = isFused && ranks() == 3 ? ExecutionMode::Inference : ExecutionMode::Training});
      const auto run = [&](int chunks) {
        std::vector<std::shared_ptr<Backend>> shares;
        for (int rank = 0; rank < ranks(); ++rank) shares.push_back(backend->shareOf(ranks()));
        return runOnRanks(whole, shares,
                          {.isFused = isFused, .recipe = recipe(name()), .numRuns = 2, .chunks = chunks});
      };
      const RankedRun inChunks = run(2);
      const RankedRun atOnce = run(1);
      ASSERT_EQ(inChunks.problem + atOnce.problem, "");
      EXPECT_EQ(firstDifference(inChunks.results, atOnce.results, 0.0), "")
          << backend->device().id << (isFused ? ", fused\n" : "\n") << toString(whole);
    }
}

INSTANTIATE_TEST_SUITE_P(Recipes, RecipesInChunks,
                         ::testing::Combine(::testing::ValuesIn(quantizingRecipes()), ::testing::Values(2, 3, 4)),
                         [](const auto& given) {
                           return std::get<0>(given.param)->name + std::to_string(std::get<1>(given.param));
                         });

/// The layer after a gather drops elements: each piece has those of its rows.
TEST(Ranks, PiecesDropTheElementsOfTheWhole) {
  const Graph whole = chain(DType::F32, {24, 48},
                            {link("GELU", "act"), link("AllGather", "gather"), linear(40, "fc"), link("Bias", "bias"),
                             with(link("Dropout", "drop"), "p", 0.5)});
  for (const std::shared_ptr<Backend>& backend : {cpu::makeCpuBackend(), makeReferenceBackend()}) {
    const auto run = [&](int chunks) {
      return runOnRanks(whole, {backend->shareOf(2), backend->shareOf(2)}, {.isFused = true, .chunks = chunks});
    };
    const RankedRun inChunks = run(4);
    const RankedRun atOnce = run(1);
    ASSERT_EQ(inChunks.problem + atOnce.problem, "");
    EXPECT_EQ(firstDifference(inChunks.results, atOnce.results, 0.0), "") << backend->device().id;
  }
}

/// By collective of a plan in chunks: "forward fc1.gather [1/2]", with its note.
std::vector<std::string> chunksUnder(const Graph& whole, const char* name, int chunks, bool isFused = false) {
  std::vector<Diagnostic> ignored;
  const RankGraph local = *rankGraph(whole, 0, 2);
  const Graph graph = applyRecipe(local.graph, recipe(name), ignored);
  const Plan plan = makePlan(graph, reportOf(graph, isFused, cpu::makeCpuBackend()), {.chunks = chunks});
  std::vector<std::string> texts;
  for (const Step& step : plan.steps)
    if (step.collective && !step.collective->isWait() && step.collective->chunks > 0)
      texts.push_back(fmt::format("{} {}: {}", phaseName(step.phase), step.name, step.note));
  return texts;
}

std::vector<std::string> quantizedGathersOf(const Graph& whole, const Recipe& chosen) {
  constexpr int kRanks = 2;
  std::vector<Diagnostic> ignored;
  const RankGraph local = *rankGraph(whole, 0, kRanks);
  const Graph graph = applyRecipe(local.graph, chosen, ignored);
  const Plan plan = makePlan(graph, unfused(graph));
  std::vector<std::string> texts;
  for (const Step& step : plan.steps) {
    if (!step.collective || step.collective->isWait() || step.collective->kind != CollectiveKind::AllGather) continue;
    std::int64_t bytes = 0;
    for (const CollectivePart& part : collectiveParts(plan, step, {}))
      bytes += wholeBytes(CollectiveKind::AllGather, part, kRanks);
    texts.push_back(fmt::format("{} {} {}", phaseName(step.phase), step.name, bytes));
  }
  return texts;
}

Graph twoLayers(std::int64_t rows, ExecutionMode pass = ExecutionMode::Training) {
  return chain(
      DType::BF16, {rows, 128},
      {parallel(linear(256, "fc1"), "column", true), link("GELU", "act"), parallel(linear(128, "fc2"), "row", true)},
      {.pass = pass});
}

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(RankPlans, ChunksOfQuantizedValues) {
  for (const char* name :
       {"DelayedScaling", "Float8CurrentScaling", "MXFP8BlockScaling", "Float8BlockScaling", "NVFP4BlockScaling"})
    EXPECT_THAT(chunksUnder(twoLayers(256), name, 2),
                ElementsAre("forward fc1.gather [1/2]: quantized values", "forward fc1.gather [2/2]: quantized values",
                            "forward fc2.sum [1/2]: ", "forward fc2.sum [2/2]: ",
                            "backward fc2.sum: quantized values; not in chunks: fc2 also computes gradients of "
                            "parameters"))
        << name;
}

TEST(RankPlans, ChunksSayWhyTheyAreFewer) {
  EXPECT_THAT(
      chunksUnder(twoLayers(128), "DelayedScaling", 3),
      ::testing::Contains(HasSubstr("2 chunks instead of 3: the 64 rows of a rank do not divide into 3 parts of "
                                    "a multiple of 8 rows")));
  EXPECT_THAT(chunksUnder(twoLayers(96 * 2), "MXFP8BlockScaling", 2),
              ::testing::Contains(HasSubstr("not in chunks: the 96 rows of a rank do not divide into 2 parts of a "
                                            "multiple of 32 rows")));
  EXPECT_THAT(chunksUnder(twoLayers(256), "DelayedScaling", 2, true),
              ::testing::Contains(HasSubstr("fc2.input@columnwise is stored transposed, so that its rows are apart")));
}

// TransformerEngine gathers encoded values, one byte an element, and transposes them.
TEST(RankPlans, GathersCarryQuantizedValuesWithOneScale) {
  constexpr int kElements = 256 * 128;
  Attributes ownScales;
  ownScales.set("reduce_amax", false);
  const std::vector<std::string> codes = {fmt::format("forward fc1.gather {}", kElements),
                                          fmt::format("backward fc2.sum {}", kElements)};
  const std::vector<std::string> numbers = {fmt::format("forward fc1.gather {}", 2 * kElements),
                                            fmt::format("backward fc2.sum {}", 2 * kElements)};
  EXPECT_EQ(quantizedGathersOf(twoLayers(256), recipe("DelayedScaling")), codes);
  EXPECT_EQ(quantizedGathersOf(twoLayers(256), recipe("Float8CurrentScaling")), codes);
  EXPECT_EQ(quantizedGathersOf(twoLayers(256), recipe("DelayedScaling", ownScales)), numbers);
}

// TransformerEngine gathers the values and scales of each direction when a GEMM needs it, unless a block would have
// rows of two ranks.
TEST(RankPlans, GathersCarryValuesAndScalesOfBlocks) {
  constexpr int kElements = 256 * 128;
  constexpr int kMx = kElements + kElements / 32;
  EXPECT_EQ(
      quantizedGathersOf(twoLayers(256), recipe("MXFP8BlockScaling")),
      (std::vector<std::string>{fmt::format("forward fc1.gather {}", kMx), fmt::format("backward fc2.sum {}", 2 * kMx),
                                fmt::format("backward fc1.gather {}", kMx)}));
  EXPECT_EQ(quantizedGathersOf(twoLayers(256 + 32), recipe("MXFP8BlockScaling")).front(),
            fmt::format("forward fc1.gather {}", 2 * (256 + 32) * 128));
  constexpr int kNv = kElements / 2 + kElements / 16;
  constexpr int kBlock = kElements + kElements / 128 * 4;
  for (const auto& [name, bytes] : {std::pair("NVFP4BlockScaling", kNv), std::pair("Float8BlockScaling", kBlock)})
    EXPECT_EQ(quantizedGathersOf(twoLayers(256), recipe(name)),
              (std::vector<std::string>{fmt::format("forward fc1.gather {}", bytes),
                                        fmt::format("backward fc2.sum {}", 2 * bytes),
                                        fmt::format("backward fc1.gather {}", bytes)}));
  const auto inference = [](const char* name) {
    return quantizedGathersOf(twoLayers(256, ExecutionMode::Inference), recipe(name));
  };
  EXPECT_EQ(inference("MXFP8BlockScaling"), (std::vector<std::string>{fmt::format("forward fc1.gather {}", kMx)}));
  EXPECT_EQ(inference("NVFP4BlockScaling"),
            (std::vector<std::string>{fmt::format("forward fc1.gather {}", kElements / 2 + kElements / 16)}));
  EXPECT_EQ(inference("Float8BlockScaling"),
            (std::vector<std::string>{fmt::format("forward fc1.gather {}", kElements + kElements / 128 * 4)}));
}

/// Outputs and gradients, with the weights' scales of the whole tensors in each rank: the codes are those of one rank.
TEST(RankedRecipes, GatheredValuesHaveTheScaleOfAllRanks) {
  constexpr int kRanks = 2;
  const Graph whole = chain(DType::F32, {256, 128}, {parallel(linear(256, "fc1"), "column", true)});
  for (const std::shared_ptr<Backend>& backend : {cpu::makeCpuBackend(), makeReferenceBackend()}) {
    std::vector<std::shared_ptr<Backend>> shares;
    for (int rank = 0; rank < kRanks; ++rank) shares.push_back(backend->shareOf(kRanks));
    const RankedRunOptions options{.recipe = recipe("DelayedScaling"), .numRuns = 2};
    const RankedRun one = runOnOneRank(whole, backend, options);
    const RankedRun several = runOnRanks(whole, shares, options);
    ASSERT_EQ(one.problem + several.problem, "");
    EXPECT_EQ(firstDifferenceInNorm(several.results, one.results, 1e-5), "") << backend->device().id;
  }
}

/// Blocks of the whole tensors are those of the ranks, so that only sums of partial gradients are rounded apart.
TEST(RankedRecipes, GatheredBlocksAreThoseOfOneRank) {
  constexpr int kRanks = 2;
  struct Case {
    const char* recipe;
    ExecutionMode pass;
    double tolerance = 1e-5;
  };
  // Under NVFP4BlockScaling the weight of a rank has an amax of its own, and gradients are rounded stochastically.
  for (const auto& [name, pass, tolerance] :
       {Case{"MXFP8BlockScaling", ExecutionMode::Training}, Case{"MXFP8BlockScaling", ExecutionMode::Inference},
        Case{"NVFP4BlockScaling", ExecutionMode::Inference, 0.1},
        Case{"NVFP4BlockScaling", ExecutionMode::Training, 0.2}, Case{"Float8BlockScaling", ExecutionMode::Training},
        Case{"Float8BlockScaling", ExecutionMode::Inference}}) {
    const Graph whole = chain(DType::F32, {256, 384}, {parallel(linear(256, "fc1"), "column", true)}, {.pass = pass});
    for (const std::shared_ptr<Backend>& backend : {cpu::makeCpuBackend(), makeReferenceBackend()}) {
      std::vector<std::shared_ptr<Backend>> shares;
      for (int rank = 0; rank < kRanks; ++rank) shares.push_back(backend->shareOf(kRanks));
      const RankedRunOptions options{.recipe = recipe(name)};
      const RankedRun one = runOnOneRank(whole, backend, options);
      const RankedRun several = runOnRanks(whole, shares, options);
      ASSERT_EQ(one.problem + several.problem, "") << name;
      EXPECT_EQ(firstDifferenceInNorm(several.results, one.results, tolerance), "") << name << backend->device().id;
    }
  }
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
  EXPECT_EQ(
      refusal({parallel(linear(8, "a"), "column", false), link("LayerNorm", "norm")}),
      "norm: LayerNorm cannot work on a tensor that is sharded by features: it needs whole rows. Put it before the "
      "column-parallel layer.");
  EXPECT_EQ(refusal({link("LayerNorm", "norm"), parallel(linear(8, "a"), "row", false)}),
            "norm: LayerNorm cannot work on a tensor that is sharded by features: it needs whole rows. Insert a "
            "column-parallel layer after it.");
  EXPECT_EQ(refusal({parallel(linear(8, "a"), "row", false), parallel(linear(8, "b"), "row", false)}),
            "b: it needs a.y to be sharded by features, but a needs it to be replicated on every rank. Put a "
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
  EXPECT_EQ(local.shards.at("fc.weight"), (Shard{.kind = Shard::Kind::Slice, .axis = 0, .parts = 2}));
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
