// Plans that are made when they are needed.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/lazy_plan.h"

#include "tests/support/pipelines.h"

#include <stop_token>

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

Graph pipeline() { return chain(DType::BF16, {8, 16}, {linear(32, "fc"), link("GELU", "act")}); }

TEST(MakePlan, EndsWhenItIsStopped) {
  const Graph graph = pipeline();
  std::stop_source stop;
  EXPECT_TRUE(makePlan(graph, unfused(graph), {}, stop.get_token()));
  stop.request_stop();
  EXPECT_FALSE(makePlan(graph, unfused(graph), {}, stop.get_token()));
}

TEST(LazyPlan, IsMadeByWhoeverNeedsItAfterTheOtherOneWasStopped) {
  const Graph graph = pipeline();
  std::stop_source stop;
  stop.request_stop();
  const LazyPlan plan(PlanOptions{.keepIntermediates = true});
  plan.prepare(graph, stop.get_token());
  EXPECT_EQ(toString(plan.of(graph)), toString(makePlan(graph, unfused(graph), {.keepIntermediates = true})));
  EXPECT_EQ(&plan.of(graph), &plan.of(graph));
}

}  // namespace
}  // namespace fuseline
