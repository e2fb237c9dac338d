// Results of each pass of the fuser: every op once, without the fusions of later passes.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fusion_stages.h"

#include "core/document/file_format.h"
#include "core/lowering/lowering.h"

#include <gtest/gtest.h>

namespace fuseline::testing {
namespace {

Graph graphOf(const std::string& name) {
  for (const DocumentTemplate& entry : documentTemplates())
    if (entry.name == name) return lower(parseDocument(entry.text).document).graph;
  return {};
}

std::vector<std::string> namesOf(const Graph& graph, const std::vector<FusedOperation>& list) {
  std::vector<std::string> names;
  for (const FusedOperation& entry : list) names.push_back(entry.name(graph));
  return names;
}

TEST(FusionStages, OfTheLlamaMlp) {
  const Graph graph = graphOf("llama-mlp");
  const FusionReport report = *fuse(graph, {.book = RuleBook::Te});
  const std::vector<std::string> ops = {"MakeExtraOutput", "RMSNorm",     "BasicLinear",
                                        "SwiGLU",          "BasicLinear", "AddExtraInput"};
  const FusionReport before = reportAfter(report, FusionStage::Joint);
  EXPECT_EQ(namesOf(graph, before.forward), ops);
  EXPECT_EQ(namesOf(graph, before.backward), ops);
  const FusionReport forward = reportAfter(report, FusionStage::Forward);
  EXPECT_EQ(namesOf(graph, forward.forward),
            (std::vector<std::string>{"MakeExtraOutput", "RMSNorm", "BasicLinear", "SwiGLU", "ForwardLinearBiasAdd"}));
  EXPECT_EQ(namesOf(graph, forward.backward), ops);
  const FusionReport backward = reportAfter(report, FusionStage::Backward);
  EXPECT_EQ(namesOf(graph, backward.backward),
            (std::vector<std::string>{"BackwardAddRMSNorm", "BasicLinear", "SwiGLU", "BasicLinear", "AddExtraInput"}));
}

TEST(FusionStages, HaveEveryOpOnce) {
  for (const DocumentTemplate& entry : documentTemplates()) {
    const Graph graph = graphOf(entry.name);
    const FusionReport report = *fuse(graph);
    for (const FusionStage stage : kFusionStages) {
      const Verdict expands = verifyExpansion(graph, reportAfter(report, stage));
      EXPECT_TRUE(expands) << entry.name << ": " << expands.reason();
    }
  }
}

TEST(FusionStages, BeginWithTheOpsAndEndWithTheReport) {
  const Graph graph = graphOf("gpt-mlp");
  const FusionReport report = *fuse(graph);
  EXPECT_EQ(toText(graph, reportAfter(report, FusionStage::Ops).forward), toText(graph, unfused(graph).forward));
  EXPECT_EQ(toText(graph, reportAfter(report, FusionStage::Ops).backward), toText(graph, unfused(graph).backward));
  EXPECT_EQ(toText(graph, reportAfter(report, FusionStage::FusedOperands).forward), toText(graph, report.forward));
}

TEST(FusionStages, EachFusionBelongsToOne) {
  const Graph graph = graphOf("llama-mlp");
  const FusionReport report = *fuse(graph, {.book = RuleBook::Te});
  EXPECT_TRUE(fusedIn(report, FusionStage::Ops).empty());
  EXPECT_TRUE(fusedIn(report, FusionStage::Joint).empty());
  ASSERT_EQ(fusedIn(report, FusionStage::Forward).size(), 1U);
  EXPECT_EQ(fusedIn(report, FusionStage::Forward).front()->rule->name, "ForwardLinearBiasAdd");
  ASSERT_EQ(fusedIn(report, FusionStage::Backward).size(), 1U);
  EXPECT_EQ(fusedIn(report, FusionStage::Backward).front()->rule->name, "BackwardAddRMSNorm");
}

}  // namespace
}  // namespace fuseline::testing
