// Dropout in plans: its statistics, its replay in backward, and the same mask fused or not, on any backend.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/plan/plan.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/pipelines.h"
#include "tests/support/run_plan.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

constexpr double kP = 0.4;  // of the links below
const Shape kShape = {70, 130};

Link dropout(std::string id, std::int64_t seed = 0) { return with(link("Dropout", std::move(id)), "seed", seed); }

Graph dropoutGraph(const std::vector<Link>& links, ExecutionMode pass = ExecutionMode::Training) {
  return chain(DType::F32, kShape, links, {.pass = pass});
}

RunResults run(const Graph& graph, const FusionReport& report) { return runPlan(graph, report, cpu::makeCpuBackend()); }

const std::vector<double>& only(const RunResults& results, const std::string& name) { return results.at(name); }

std::vector<bool> keptIn(const std::vector<double>& values) {
  std::vector<bool> kept;
  for (const double value : values) kept.push_back(value != 0.0);
  return kept;
}

/// The name of the gradient of x among the results.
std::string gradientName(const RunResults& results) {
  const auto found = std::ranges::find_if(results, [](const auto& entry) { return entry.first != "y"; });
  return found->first;
}

// Five standard deviations.
TEST(Dropout, DropsTheAskedShareAndScalesTheOthersUp) {
  const Graph graph = dropoutGraph({dropout("drop")});
  const Graph plain = dropoutGraph({link("Identity", "drop")});
  const RunResults results = run(graph, unfused(graph));
  const std::vector<double>& y = only(results, "y");
  const RunResults expected = run(plain, unfused(plain));
  const auto count = static_cast<double>(y.size());
  EXPECT_NEAR(static_cast<double>(std::ranges::count(y, 0.0)) / count, kP, 5.0 * std::sqrt(kP * (1.0 - kP) / count));
  for (std::size_t i = 0; i < y.size(); ++i)
    if (y[i] != 0.0) {
      ASSERT_NEAR(y[i], only(expected, "y")[i] / (1.0 - kP), 1e-6 * std::abs(y[i]));
    }
}

TEST(Dropout, ReplaysItsMaskInBackwardWithoutKeepingAnything) {
  const Graph graph = dropoutGraph({dropout("drop")});
  EXPECT_EQ(makePlan(graph, unfused(graph)).savedForBackwardBytes, 0);
  const RunResults results = run(graph, unfused(graph));
  EXPECT_EQ(keptIn(only(results, gradientName(results))), keptIn(only(results, "y")));
}

TEST(Dropout, HasTheSameMaskFusedAndUnfused) {
  const Graph graph = dropoutGraph({link("Bias"), dropout("drop"), link("AddExtraInput"), dropout("again")});
  const FusionReport fused = std::move(*fuse(graph, {}));
  ASSERT_LT(makePlan(graph, fused).steps.size(), makePlan(graph, unfused(graph)).steps.size());
  EXPECT_EQ(firstDifference(run(graph, fused), run(graph, unfused(graph)), 1e-5), "");
}

TEST(Dropout, DiffersByOpAndBySeed) {
  const auto mask = [](const Link& op) {
    const Graph graph = dropoutGraph({op});
    return keptIn(only(run(graph, unfused(graph)), "y"));
  };
  EXPECT_EQ(mask(dropout("a")), mask(dropout("a")));
  EXPECT_NE(mask(dropout("a")), mask(dropout("b")));
  EXPECT_NE(mask(dropout("a")), mask(dropout("a", 1)));
}

TEST(Dropout, IsAViewOutsideTraining) {
  const Graph graph = dropoutGraph({dropout("drop")}, ExecutionMode::Inference);
  EXPECT_TRUE(makePlan(graph, unfused(graph)).steps.front().isView);
}

// A scale per row that an elementwise op computes is on another grid than the rows.
TEST(ScaledOps, AreNotFusedWithWhatMakesTheirScales) {
  const Graph graph = [] {
    const Graph pieces = chain(DType::F32, {6, 16}, {link("ScaledSReLU", "act")});
    GraphBuilder builder;
    const ValueId x = builder.addInput("x", {DType::F32, {6, 16}});
    const ValueId logits = builder.addInput("logits", {DType::F32, {6}});
    const NodeId gelu =
        *builder.addNode("gelu", "gelu", *chain(DType::F32, {6}, {link("GELU")}).node(0).operation, {}, {logits});
    const ValueId scales = builder.partial().node(gelu).outputs.front();
    const NodeId act = *builder.addNode("act", "act", *pieces.node(0).operation, {}, {x, scales});
    builder.addOutput("y", builder.partial().node(act).outputs.front());
    return std::move(builder).finish(ExecutionMode::Training);
  }();
  const FusionReport report = std::move(*fuse(graph, {}));
  EXPECT_EQ(makePlan(graph, report).steps.size(), makePlan(graph, unfused(graph)).steps.size());
  const RunResults expected = runPlan(graph, unfused(graph), makeReferenceBackend());
  EXPECT_EQ(firstDifference(run(graph, report), expected, 1e-5), "");
}

}  // namespace
}  // namespace fuseline
