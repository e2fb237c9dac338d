// Predicted savings: differences of plans, and known values counted by hand.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/savings/planned_savings.h"

#include "core/plan/savings/window_shapes.h"
#include "core/support/to_index.h"
#include "tests/support/attention_layers.h"
#include "tests/support/pipelines.h"
#include "tests/support/random_pipelines.h"

#include <algorithm>
#include <tuple>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

/// The MLP of a Llama with its residual: 256 rows of 256 columns, 512 within.
Graph llamaMlp(const std::string& recipe) {
  return chain(DType::BF16, {256, 256},
               {link("MakeExtraOutput", "save"), link("RMSNorm", "norm"), linear(1024, "fc1"), link("SwiGLU", "act"),
                linear(256, "fc2"), inPlace(link("AddExtraInput", "add", "save.extra"))},
               {.recipe = recipe});
}

/// 256 tokens with 4 heads and 2 groups of 8 channels: 32 columns of queries, 16 of keys, 16 of values.
Graph attention(const AttentionLayer& layer, const std::string& recipe = {}) {
  return chain(DType::BF16, {128, 2, 16}, layer.links, {.recipe = recipe});
}

struct Predicted {
  Graph graph;
  FusionOptions options;
  FusionReport report;

  explicit Predicted(Graph of, FusionOptions with = {})
      : graph(std::move(of)), options(std::move(with)), report(std::move(*fuseByPlans(graph, options))) {}

  Saving of(std::string_view rule, Outcome outcome = Outcome::Fused) const {
    for (const Attempt& attempt : report.attempts)
      if (attempt.outcome == outcome && attempt.rule->name == rule && attempt.saving) return *attempt.saving;
    return {.bytes = -1};
  }

  Saving allOf(std::string_view rule, Outcome outcome = Outcome::Fused) const {
    Saving all;
    for (const Attempt& attempt : report.attempts)
      if (attempt.outcome == outcome && attempt.rule->name == rule && attempt.saving) {
        all.bytes += attempt.saving->bytes;
        all.launches += attempt.saving->launches;
      }
    return all;
  }
};

/// The whole plan, not only the neighborhood of the fusion.
void expectDifferencesOfPlans(const Predicted& predicted) {
  const Saving with = costOf(makePlan(predicted.graph, predicted.report));
  int numFused = 0;
  for (const Attempt& attempt : predicted.report.attempts) {
    if (attempt.outcome != Outcome::Fused) continue;
    const FusionReport others =
        reportWithout(predicted.graph, predicted.options, predicted.report, {attempt.rule, attempt.nodes});
    const Saving without = costOf(makePlan(predicted.graph, others));
    EXPECT_EQ(attempt.saving->bytes, without.bytes - with.bytes) << attempt.rule->name << " " << attempt.explanation;
    EXPECT_EQ(attempt.saving->launches, without.launches - with.launches) << attempt.rule->name;
    ++numFused;
  }
  EXPECT_GT(numFused, 0);
}

TEST(PlannedSavings, AreThoseOfTheWholePlan) {
  for (const char* recipe : {"", "DelayedScaling", "Float8CurrentScaling", "Float8BlockScaling"}) {
    expectDifferencesOfPlans(Predicted(llamaMlp(recipe)));
    for (const AttentionLayer& layer : {llamaAttention(), qwen3Attention(), gpt2Attention()})
      expectDifferencesOfPlans(Predicted(attention(layer, recipe)));
  }
}

constexpr std::int64_t kRows = 256;
constexpr std::int64_t kBytes = 2;  // of an element

// Without it, attention reads the parts of the packed tensor in place. Only the values are copied in forward, because
// backward needs them, but not the rest of that tensor. Rotary embeddings read and write queries and keys, once each in
// forward and in backward.
TEST(PlannedSavings, OfSplitAttentionCountNoCopyThatIsAView) {
  const Predicted predicted(attention(llamaAttention()));
  constexpr std::int64_t kRotated = 2 * (32 + 16) * kRows * kBytes;
  constexpr std::int64_t kCopied = 2 * 16 * kRows * kBytes;
  EXPECT_EQ(predicted.of("ForwardBackwardSplitAttention"),
            (Saving{.bytes = 2 * kRotated + kCopied, .launches = 2 * 2 + 1}))
      << toTree(predicted.graph, predicted.report);
}

TEST(PlannedSavings, OfALlamaMlpAreReadsAndWritesOfOneTensor) {
  const Predicted predicted(llamaMlp(""));
  constexpr std::int64_t kHidden = 256 * kRows * kBytes;
  EXPECT_EQ(predicted.of("ForwardLinearEpilogue"), (Saving{.bytes = 1024 * kRows * kBytes, .launches = 1}));
  EXPECT_EQ(predicted.of("ForwardLinearBiasAdd"), (Saving{.bytes = 2 * kHidden, .launches = 1}));
  EXPECT_EQ(predicted.of("BackwardAddRMSNorm"), (Saving{.bytes = 2 * kHidden, .launches = 1}));
}

// The norm finds the amax, which is written and read, so that quantizing reads its output once less.
TEST(PlannedSavings, OfAnAmaxAreOneReadOfTheTensor) {
  const Predicted predicted(llamaMlp("Float8CurrentScaling"));
  EXPECT_EQ(predicted.of("ForwardAmax"), (Saving{.bytes = 256 * kRows * kBytes - 2 * 4}));
}

// A fusion that is off would save what it saves where it is on.
TEST(PlannedSavings, OfAFusionThatIsSwitchedOffAreThoseThatItWouldHave) {
  const auto expectSame = [](const char* rule, const std::string& recipe) {
    const Predicted off(llamaMlp(recipe), {.switches = {.without = {rule}, .with = {}}});
    EXPECT_EQ(off.allOf(rule, Outcome::SwitchedOff), Predicted(llamaMlp(recipe)).allOf(rule)) << rule;
    EXPECT_GT(off.allOf(rule, Outcome::SwitchedOff).bytes, 0) << rule;
  };
  for (const char* rule : {"ForwardLinearBiasAdd", "BackwardAddRMSNorm"}) expectSame(rule, "");
  expectSame("ForwardAmax", "Float8CurrentScaling");
  expectSame("ForwardQuantize", "DelayedScaling");
}

// TransformerEngine fuses the addition only where it is in place: one edit.
TEST(PlannedSavings, OfAConditionThatOneEditSatisfiesAreThoseAfterTheEdit) {
  const auto residual = [](bool isInPlace) {
    return chain(DType::BF16, {256, 256},
                 {link("MakeExtraOutput", "save"), linear(256, "fc"),
                  inPlace(link("AddExtraInput", "add", "save.extra"), isInPlace)});
  };
  const Saving after = Predicted(residual(true)).of("ForwardLinearBiasAdd");
  EXPECT_GT(after.bytes, 0);
  EXPECT_EQ(Predicted(residual(false)).of("ForwardLinearBiasAdd", Outcome::ConditionFailed), after);
}

/// A fusion that lost its ops to others, but with which the plan would have less traffic, or as much and fewer
/// launches.
std::string betterChoice(const Predicted& predicted) {
  const auto& [graph, options, report] = predicted;
  const Saving chosen = costOf(makePlan(graph, report));
  for (const Attempt& attempt : report.attempts) {
    if (attempt.outcome != Outcome::TakenByAnother) continue;
    const FusionPlace place{attempt.rule, attempt.nodes};
    if (!isLegalBeside(graph, options, reportWithout(graph, options, report, place), place)) continue;
    const Saving instead = costOf(makePlan(graph, reportWith(graph, options, report, place)));
    if (std::tie(instead.bytes, instead.launches) < std::tie(chosen.bytes, chosen.launches))
      return attempt.rule->name + " " + attempt.explanation + "\n" + toTree(graph, report);
  }
  return {};
}

TEST(PlannedSavings, DecideBetweenOverlappingFusions) {
  EXPECT_TRUE(rc::check([] {
    const RandomPipeline random = randomPipeline();
    for (const char* recipe : {"", "Float8CurrentScaling", "DelayedScaling"}) {
      ChainOptions options = random.options;
      options.recipe = recipe;
      const Predicted predicted(chain(DType::BF16, {16, 16}, random.links, options),
                                {.switches = {.without = random.switches.without, .with = {}}});
      RC_ASSERT(betterChoice(predicted) == "");
    }
  }));
}

TEST(WindowShapes, AreEqualWhereOnlyNamesDiffer) {
  const Graph graph =
      chain(DType::BF16, {16, 64}, {link("Dropout", "first"), link("Dropout", "second"), link("GELU", "third")});
  ShapeNumbers numbers;
  const WindowShapes shapes(graph, {}, numbers);
  EXPECT_EQ(shapes.of({0}), shapes.of({1}));
  EXPECT_NE(shapes.of({1}), shapes.of({2}));
}

// Layers of a stack are alike, but for one.
TEST(PlannedSavings, OfRepeatedLayersAreThoseOfEach) {
  std::vector<Link> links;
  for (const std::int64_t width : {64, 64, 64, 96, 64, 64}) {
    links.push_back(linear(width));
    links.push_back(link("Bias"));
    links.push_back(link("GELU"));
    links.push_back(linear(64));
  }
  expectDifferencesOfPlans(Predicted(chain(DType::BF16, {32, 64}, links)));
  expectDifferencesOfPlans(Predicted(chain(DType::BF16, {32, 64}, links, {.recipe = "Float8CurrentScaling"})));
}

// The window of a branch has some of the others: not all, or each would be planned with all.
TEST(PlannedSavings, OfParallelBranchesArePlannedOnce) {
  constexpr std::size_t kBranches = 100;
  std::vector<Link> links;
  ChainOptions options{.recipe = "Float8CurrentScaling"};
  for (std::size_t i = 0; i < kBranches; ++i) {
    const std::string name = std::to_string(i);
    links.push_back(reading("x", link("RMSNorm", "norm" + name)));
    links.push_back(linear(16, "fc" + name));
    options.extraOutputs.push_back("fc" + name + ".y");
  }
  options.extraOutputs.pop_back();
  KnownSavings known;
  const Result<FusionReport> report = fuseByPlans(chain(DType::BF16, {16, 16}, links, options), {}, {}, &known);
  ASSERT_TRUE(report);
  EXPECT_GE(report->attempts.size(), kBranches);
  EXPECT_LT(known.savings.size(), kBranches);
}

/// Position of each op's entry.
std::vector<std::size_t> positionsIn(const std::vector<FusedOperation>& list, const Graph& graph) {
  std::vector<std::size_t> positions(graph.nodes().size());
  for (std::size_t i = 0; i < list.size(); ++i)
    for (const NodeId id : list[i].nodes) positions[toIndex(id)] = i;
  return positions;
}

// The layer that a fusion gives back reads what a chain with later ops produces.
TEST(PlannedSavings, TakeFusionsApartInAnOrderThatRuns) {
  const Predicted predicted(chain(
      DType::F16, {32, 16},
      {link("GELU", "gelu"), linear(16, "fc"), reading("gelu.y", link("AddExtraInput", "sum")),
       reading("fc.y", with(link("ConstantScale", "scale"), "scale", 2.0)), inPlace(link("AddExtraInput", "add"))},
      {.recipe = "DelayedScaling"}));
  const Graph& graph = predicted.graph;
  for (const Attempt& attempt : predicted.report.attempts) {
    if (attempt.outcome != Outcome::Fused) continue;
    const FusionReport others =
        reportWithout(graph, predicted.options, predicted.report, {attempt.rule, attempt.nodes});
    const std::vector<std::size_t> positions = positionsIn(others.forward, graph);
    for (const Value& value : graph.values())
      for (const Use& use : value.uses)
        EXPECT_TRUE(value.producer < 0 || positions[toIndex(value.producer)] <= positions[toIndex(use.node)])
            << value.name << " without " << attempt.rule->name;
  }
  expectDifferencesOfPlans(predicted);
}

// One entry of each pass has all ops.
TEST(PlannedSavings, OfALongChainAreDifferencesOfPlans) {
  expectDifferencesOfPlans(Predicted(chain(DType::F32, {4, 8}, std::vector<Link>(60, link("GELU")))));
}

/// The keys of multi-head latent attention: a norm and a rotary embedding read columns of the projection in place.
TEST(PlannedSavings, LeavesOutAFusionThatSavesNothing) {
  const Link split = with(link("Split", "split"), "sizes", std::vector<std::int64_t>{512, 64});
  const Link rope = with(rotaryOf("rope", "split.y1"), "dim", std::int64_t{64});
  const Predicted predicted(
      chain(DType::BF16, {32, 2, 64},
            {linear(576, "kv"), split, rope, link("GELU", "act"), reading("split.y", link("RMSNorm"))},
            {.pass = ExecutionMode::Inference, .extraOutputs = {"act.y"}}));
  const auto attempt = std::ranges::find_if(predicted.report.attempts,
                                            [](const Attempt& one) { return one.rule->name == "ForwardSplitRotary"; });
  ASSERT_NE(attempt, predicted.report.attempts.end());
  EXPECT_EQ(attempt->outcome, Outcome::ConditionFailed);
  EXPECT_EQ(attempt->explanation, "It would save neither traffic nor time.");
}

}  // namespace
}  // namespace fuseline
