// How a graph is cut into te.ops.Sequential.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/te/te_sequences.h"

#include "tests/support/pipelines.h"
#include "tests/support/random_pipelines.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace fuseline {
namespace {

using testing::chain;
using testing::inPlace;
using testing::inside;
using testing::linear;
using testing::link;
using testing::reading;

FusionReport teReport(const Graph& graph) { return *fuse(graph, {.book = RuleBook::Te}); }

/// "save norm | fc add".
std::string text(const Graph& graph, const std::vector<TeSequence>& sequences) {
  std::vector<std::string> texts;
  for (const TeSequence& sequence : sequences) {
    std::vector<std::string> ids;
    for (const NodeId node : sequence.nodes) ids.push_back(graph.node(node).id);
    texts.push_back(fmt::format("{}", fmt::join(ids, " ")));
  }
  return fmt::format("{}", fmt::join(texts, " | "));
}

std::string cut(const Graph& graph) { return text(graph, teSequences(graph, teReport(graph))); }

TEST(TeSequences, AResidualStaysInOne) {
  const Graph graph = chain(DType::BF16, {8, 16},
                            {link("MakeExtraOutput", "save"), link("RMSNorm", "norm"), linear(16, "fc"),
                             link("AddExtraInput", "add", "save.extra")});
  const std::vector<TeSequence> sequences = teSequences(graph, teReport(graph));
  ASSERT_EQ(text(graph, sequences), "save norm fc add");
  EXPECT_TRUE(isChannel(graph, sequences[0], graph.findValue("save.extra")));
  EXPECT_FALSE(isReturned(graph, sequences[0], graph.findValue("save.extra")));
  EXPECT_TRUE(sequences[0].extraInputs.empty());
  EXPECT_TRUE(sequences[0].extraOutputs.empty());
}

// TransformerEngine has quantizers for a layer that does not fit, too.
TEST(TeSequences, LayersThatDoNotFitTheRecipeAreApart) {
  const testing::ChainOptions options = {.recipe = "MXFP8BlockScaling"};
  const Graph graph = chain(DType::BF16, {32, 24}, {linear(24, "up"), linear(24, "down")}, options);
  const std::optional<Recipe> recipe = recipeOf(options);
  ASSERT_FALSE(graph.node(0).quantizers.any());
  EXPECT_EQ(text(graph, teSequences(graph, teReport(graph), {}, &*recipe)), "up | down");
  EXPECT_EQ(cut(graph), "up down");
}

TEST(TeSequences, AnExtraOutputThatIsAPipelineOutputIsReturnedAsWell) {
  const Graph graph =
      chain(DType::BF16, {8, 16},
            {link("MakeExtraOutput", "save"), link("GELU", "act"), link("AddExtraInput", "add", "save.extra")},
            {.extraOutputs = {"save.extra"}});
  const std::vector<TeSequence> sequences = teSequences(graph, teReport(graph));
  EXPECT_TRUE(isChannel(graph, sequences[0], graph.findValue("save.extra")));
  EXPECT_EQ(sequences[0].extraOutputs, std::vector{graph.findValue("save.extra")});
}

TEST(TeSequences, AValueThatTwoOpsReadEndsOne) {
  const Graph graph =
      chain(DType::BF16, {8, 16}, {link("RMSNorm", "norm"), linear(16, "fc"), link("AddExtraInput", "add", "norm.y")});
  EXPECT_EQ(cut(graph), "norm | fc add");
  EXPECT_EQ(teSequences(graph, teReport(graph))[1].extraInputs, std::vector{graph.findValue("norm.y")});
}

TEST(TeSequences, AFormulaAndTheBorderOfANestedSequentialEndOne) {
  EXPECT_EQ(cut(chain(DType::BF16, {8, 16}, {link("GELU", "a"), link("Formula", "f"), link("GELU", "b")})),
            "a | f | b");
  EXPECT_EQ(
      cut(chain(DType::BF16, {8, 16}, {link("GELU", "a"), inside("block", link("GELU", "b")), link("GELU", "c")})),
      "a | b | c");
}

// fc alone could continue the first sequence, but then add could not follow it.
TEST(TeSequences, WhatIsFusedStaysTogether) {
  const std::vector<testing::Link> links = {link("MakeExtraOutput", "save"), linear(16, "fc"),
                                            reading("save.extra", link("GELU", "side")),
                                            reading("fc.y", inPlace(link("AddExtraInput", "add", "side.y")))};
  EXPECT_EQ(cut(chain(DType::BF16, {8, 16}, links)), "save | side | fc add");
  std::vector<testing::Link> apart = links;
  apart[3] = inPlace(apart[3], false);
  EXPECT_EQ(cut(chain(DType::BF16, {8, 16}, apart)), "save fc | side | add");
}

std::set<ValueId> inputsOf(const Graph& graph) { return {graph.inputs().begin(), graph.inputs().end()}; }

/// Everything a sequence reads is there when it runs: the module could be called.
void checkOrder(const Graph& graph, const std::vector<TeSequence>& sequences) {
  std::set<ValueId> there = inputsOf(graph);
  for (const TeSequence& sequence : sequences) {
    RC_ASSERT(there.contains(sequence.input));
    for (const ValueId value : sequence.extraInputs) RC_ASSERT(there.contains(value));
    for (const NodeId node : sequence.nodes)
      for (std::size_t slot = 1; slot < graph.node(node).inputs.size(); ++slot) {
        const ValueId extra = graph.node(node).inputs[slot];
        const bool isOutside = std::ranges::count(sequence.extraInputs, extra) > 0;
        RC_ASSERT(isOutside || isChannel(graph, sequence, extra));
      }
    there.insert(sequence.output);
    there.insert(sequence.extraOutputs.begin(), sequence.extraOutputs.end());
  }
  for (const GraphOutput& output : graph.outputs()) RC_ASSERT(there.contains(output.value));
}

void checkChain(const Graph& graph, const TeSequence& sequence) {
  RC_ASSERT(sequence.isTe || sequence.nodes.size() == 1u);
  for (std::size_t i = 1; i < sequence.nodes.size(); ++i)
    RC_ASSERT(graph.node(sequence.nodes[i]).inputs[0] == graph.node(sequence.nodes[i - 1]).outputs[0]);
}

RC_GTEST_PROP(TeSequences, HoldEveryOpOnceInAnOrderThatRuns, ()) {
  const testing::RandomPipeline pipeline = testing::randomPipeline();
  const Graph graph = chain(DType::BF16, {32, 16}, pipeline.links, pipeline.options);
  const std::vector<TeSequence> sequences = teSequences(graph, teReport(graph));
  std::multiset<NodeId> nodes;
  for (const TeSequence& sequence : sequences) {
    nodes.insert(sequence.nodes.begin(), sequence.nodes.end());
    checkChain(graph, sequence);
  }
  RC_ASSERT(nodes.size() == graph.nodes().size());
  RC_ASSERT(std::set<NodeId>(nodes.begin(), nodes.end()).size() == nodes.size());
  checkOrder(graph, sequences);
}

// Each reads both that the one before makes, so that there are 2^40 ways through them.
TEST(Makers, AreFoundBehindManyModules) {
  std::vector<testing::Link> links = {link("GELU", "first")};
  for (int i = 0; i < 40; ++i)
    for (const char* name : {"a", "b"}) links.push_back(link("AddExtraInput", fmt::format("{}{}", name, i)));
  const Graph graph = chain(DType::BF16, {8, 16}, links);
  // The extra inputs are inputs of the graph, in pairs.
  std::vector<ModuleBetween> between;
  std::vector<ValueId> values = {graph.findValue("first.y")};
  for (std::size_t i = 0; i < 40; ++i) {
    const std::vector<ValueId> made = {graph.inputs()[1 + 2 * i], graph.inputs()[2 + 2 * i]};
    between.push_back({.path = "m", .call = "m()", .inputs = values, .outputs = made});
    values = made;
  }
  EXPECT_EQ(Makers(graph, between).of(values[1]), std::vector<NodeId>{0});
}

// Only the GEMMs of DelayedScaling can produce the quantized input of the next one.
TEST(TeSequences, NeighboursWhoseGemmWouldHandOverCodesArePartedWhereItCannot) {
  const std::vector<testing::Link> links = {linear(16, "down"), link("Bias", "bias"), linear(16, "up")};
  const auto cutUnder = [&](const char* recipe) {
    return cut(chain(DType::BF16, {128, 128}, links, {.recipe = recipe}));
  };
  EXPECT_EQ(cutUnder(""), "down bias up");
  EXPECT_EQ(cutUnder("DelayedScaling"), "down bias up");
  const std::vector<testing::Link> wide = {linear(128, "down"), link("Bias", "bias"), linear(128, "up")};
  for (const char* recipe : {"Float8CurrentScaling", "Float8BlockScaling", "MXFP8BlockScaling", "NVFP4BlockScaling"})
    EXPECT_EQ(cut(chain(DType::BF16, {128, 128}, wide, {.recipe = recipe})), "down bias | up") << recipe;
  EXPECT_EQ(cut(chain(DType::BF16, {128, 128}, {linear(128, "a"), testing::quantizeLink(true, false, "q")},
                      {.recipe = "MXFP8BlockScaling"})),
            "a | q");
  EXPECT_EQ(cut(chain(DType::BF16, {128, 128}, {testing::quantizeLink(false, true, "q"), linear(128, "a")},
                      {.recipe = "MXFP8BlockScaling"})),
            "q | a")
      << "its gradient";
  EXPECT_EQ(cut(chain(DType::BF16, {128, 128}, {linear(128, "a"), link("Identity", "i"), linear(128, "b")},
                      {.recipe = "MXFP8BlockScaling"})),
            "a i b");
}

}  // namespace
}  // namespace fuseline
