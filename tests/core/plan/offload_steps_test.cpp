// Activation offload in plans: the copies, their times, and their savings.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/plan.h"
#include "tests/support/pipelines.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

Link offloaded(Link link) { return with(std::move(link), "cpu_offloading", true); }

Plan planOf(const std::vector<Link>& links, const ChainOptions& options = {}) {
  const Graph graph = chain(DType::F32, {64, 32}, links, options);
  return makePlan(graph, unfused(graph));
}

std::vector<Link> stack(int layers, bool isOffloaded) {
  std::vector<Link> links;
  for (int layer = 0; layer < layers; ++layer)
    for (Link item : {linear(32, "fc" + std::to_string(layer)), link("GELU", "act" + std::to_string(layer))})
      links.push_back(isOffloaded ? offloaded(std::move(item)) : std::move(item));
  return links;
}

int placeOf(const Plan& plan, const std::string& name) {
  const auto found = std::ranges::find(plan.steps, name, &Step::name);
  return found == plan.steps.end() ? -1 : static_cast<int>(found - plan.steps.begin());
}

int placeOf(const Plan& plan, const std::string& name, Phase phase) {
  const auto found =
      std::ranges::find_if(plan.steps, [&](const Step& step) { return step.name == name && step.phase == phase; });
  return found == plan.steps.end() ? -1 : static_cast<int>(found - plan.steps.begin());
}

TEST(Offload, CopiesWhatAnOpKeepsThereAndBack) {
  const Plan plan = planOf({linear(32, "fc"), offloaded(link("GELU", "act")), linear(16, "out")});
  const int made = placeOf(plan, "fc", Phase::Forward);
  const int begun = placeOf(plan, "offload fc:y");
  const int ended = placeOf(plan, "offload fc:y (wait)");
  const int reloaded = placeOf(plan, "reload fc:y");
  const int read = placeOf(plan, "act", Phase::Backward);
  EXPECT_EQ(begun, made + 1);
  EXPECT_GT(ended, begun + 1) << "a step runs beside the copy";
  EXPECT_GT(reloaded, ended);
  EXPECT_EQ(placeOf(plan, "reload fc:y (wait)"), read - 1);
  const StepOperand* saved = plan.steps.at(static_cast<std::size_t>(read)).find({0, OperandKind::Input, 0});
  ASSERT_NE(saved, nullptr);
  EXPECT_EQ(plan.tensors.at(static_cast<std::size_t>(saved->tensor)).name, "fc:y@reloaded");
  EXPECT_EQ(plan.hostBytes, 64 * 32 * 4);
}

TEST(Offload, LeavesAloneWhatIsNotItsOwn) {
  // fc keeps x, which is the caller's, and its weight.
  EXPECT_EQ(planOf({offloaded(linear(32, "fc")), link("GELU", "act")}).hostBytes, 0);
  EXPECT_EQ(planOf(stack(3, false)).hostBytes, 0);
  EXPECT_EQ(planOf(stack(3, true), {.pass = ExecutionMode::Inference}).hostBytes, 0);
}

TEST(Offload, LeavesWhatIsNotWorthACopy) {
  const Plan plan = planOf({linear(512, "fc"), offloaded(link("LayerNorm", "norm")), linear(8, "out")});
  EXPECT_GE(placeOf(plan, "offload fc:y"), 0);
  EXPECT_EQ(placeOf(plan, "offload norm:mean"), -1);
}

TEST(Offload, SavesMemoryOfTheDevice) {
  const Plan kept = planOf(stack(8, false));
  const Plan away = planOf(stack(8, true));
  EXPECT_EQ(away.savedForBackwardBytes, 0);
  EXPECT_EQ(away.hostBytes, kept.savedForBackwardBytes);
  EXPECT_LT(2 * away.arenaBytes, kept.arenaBytes);
}

TEST(Offload, DoesNotSaveMoreWithMoreLayers) {
  EXPECT_EQ(planOf(stack(8, true)).arenaBytes, planOf(stack(30, true)).arenaBytes);
}

TEST(Offload, EndsEveryCopyThatItBegins) {
  const Plan plan = planOf(stack(5, true));
  std::vector<std::string> underWay;
  std::size_t most = 0;
  for (const Step& step : plan.steps) {
    if (!step.transfer) continue;
    const std::string name = step.name.substr(0, step.name.find(" (wait)"));
    if (step.transfer->isWait()) {
      ASSERT_EQ(std::erase(underWay, name), 1u) << step.name;
    } else {
      underWay.push_back(name);
    }
    most = std::max(most, underWay.size());
  }
  EXPECT_TRUE(underWay.empty());
  EXPECT_EQ(most, 2u);
}

TEST(Offload, ReadsAViewOfWhatWaitsThroughAView) {
  const Plan plan = planOf({linear(32, "fc"), with(link("Reshape", "flat"), "shape", std::vector<std::int64_t>{2048}),
                            offloaded(link("GELU", "act"))});
  EXPECT_EQ(plan.hostBytes, 64 * 32 * 4);
  const int view = plan.findTensor("flat:y@reloaded");
  ASSERT_GE(view, 0);
  const PlanTensor& tensor = plan.tensors.at(static_cast<std::size_t>(view));
  EXPECT_EQ(tensor.spec.shape, (Shape{2048}));
  EXPECT_EQ(tensor.storage, plan.tensors.at(static_cast<std::size_t>(plan.findTensor("fc:y@reloaded"))).storage);
}

TEST(Offload, TakesQuantizedCopies) {
  const Graph graph = chain(DType::BF16, {64, 64}, {link("GELU", "act"), offloaded(linear(64, "fc"))},
                            {.recipe = "Float8CurrentScaling"});
  const Plan plan = makePlan(graph, unfused(graph));
  EXPECT_GE(placeOf(plan, "offload fc.input@columnwise"), 0) << toString(plan);
  EXPECT_LT(plan.hostBytes, 64 * 64 * 2) << "codes, not numbers";
}

}  // namespace
}  // namespace fuseline
