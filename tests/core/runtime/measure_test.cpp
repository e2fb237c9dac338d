// Rounds: their number, their plans, and the results after a cancel. No test checks a time.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/measure.h"

#include "core/runtime/bindings.h"
#include "tests/support/pipelines.h"
#include "tests/support/traced_backend.h"
#include "tests/support/wrapped_backend.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

/// Two plans of one small graph.
struct MeasuredScene {
  Graph graph = chain(DType::F32, {2, 4}, {link("MakeExtraOutput", "save"), linear(4, "fc"), link("GELU", "act")});
  Plan unfusedPlan = makePlan(graph, unfused(graph));
  Plan fusedPlan = makePlan(graph, *fuse(graph));
  NamedTensors bindings = *makeBindings(graph, 1);
  std::unique_ptr<Executor> first = *Executor::create(makeReferenceBackend(), graph, unfusedPlan, bindings);
  std::unique_ptr<Executor> second = *Executor::create(makeReferenceBackend(), graph, fusedPlan, bindings);
  std::vector<TimedPlan*> executors = {first.get(), second.get()};
};

TEST(Measure, RunsAsManyRoundsAsAskedFor) {
  MeasuredScene scene;
  const Result<Measurement> measured = measure(scene.executors, {.iterations = 4});
  ASSERT_TRUE(measured);
  ASSERT_EQ(measured->plans.size(), 2u);
  for (const PlanSamples& plan : measured->plans) {
    EXPECT_EQ(plan.endToEndNs.size(), 4u);
    EXPECT_EQ(plan.instrumentedNs.size(), 4u);
    for (const auto& samples : plan.stepNs) EXPECT_EQ(samples.size(), 4u);
  }
  EXPECT_FALSE(measured->isPartial);
}

TEST(Measure, TimesLaunchesAndLeavesViewsAtZero) {
  MeasuredScene scene;
  const Result<Measurement> measured = measure(scene.executors, {.iterations = 1});
  ASSERT_TRUE(measured);
  int numViews = 0;
  for (std::size_t step = 0; step < scene.unfusedPlan.steps.size(); ++step) {
    const bool isView = scene.unfusedPlan.steps[step].isView;
    numViews += isView;
    EXPECT_EQ(measured->plans[0].stepNs[step][0] == 0.0, isView) << scene.unfusedPlan.steps[step].name;
  }
  EXPECT_GT(numViews, 0);
}

TEST(Measure, KnowsWhenStepsRanInTheMedianRound) {
  MeasuredScene scene;
  const Result<Measurement> measured = measure(scene.executors, {.iterations = 5});
  ASSERT_TRUE(measured);
  for (const PlanSamples& plan : measured->plans) {
    const Timeline timeline = plan.medianTimeline();
    const double total = plan.instrumentedNs[static_cast<std::size_t>(timeline.round)];
    std::vector<double> totals = plan.instrumentedNs;
    std::ranges::sort(totals);
    EXPECT_EQ(total, totals[2]);
    ASSERT_FALSE(timeline.spans.empty());
    double endNs = 0.0;
    for (const TimelineSpan& span : timeline.spans) {
      EXPECT_EQ(span.durationNs,
                plan.stepNs[static_cast<std::size_t>(span.step)][static_cast<std::size_t>(timeline.round)]);
      EXPECT_GE(span.startNs, endNs) << "one after the other";
      endNs = span.startNs + span.durationNs;
    }
    EXPECT_LE(endNs, total);
  }
}

TEST(Measure, TimesWholeRunsOnlyWhereNothingTimesSteps) {
  MeasuredScene scene;
  scene.first = *Executor::create(makeReferenceBackend(), scene.graph, scene.unfusedPlan, scene.bindings, {},
                                  {.clock = StepClock::None});
  scene.executors.front() = scene.first.get();
  const Result<Measurement> measured = measure(scene.executors, {.iterations = 2});
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->plans[0].endToEndNs.size(), 2u);
  EXPECT_EQ(measured->plans[0].instrumentedNs.size(), 0u);
  EXPECT_TRUE(measured->plans[0].medianTimeline().spans.empty());
  for (const auto& samples : measured->plans[0].stepNs) EXPECT_EQ(samples.size(), 0u);
  EXPECT_EQ(measured->plans[1].instrumentedNs.size(), 2u);
}

/// The two plans, each with a separate trace.
std::vector<std::unique_ptr<Executor>> traced(const MeasuredScene& scene, const TraceFaults& first,
                                              const TraceFaults& second) {
  std::vector<std::unique_ptr<Executor>> executors;
  for (const auto& [plan, faults] : {std::pair{&scene.unfusedPlan, first}, std::pair{&scene.fusedPlan, second}})
    executors.push_back(
        *Executor::create(tracedBackend(faults), scene.graph, *plan, scene.bindings, {}, {.clock = StepClock::Trace}));
  return executors;
}

/// With events, a step of ClockedBackend takes its index in nanoseconds; traced, 11.
TEST(Measure, TimesAllStepsByEventsWhereATraceIsGivenUp) {
  const MeasuredScene scene;
  constexpr int kTracedRounds = 2;
  for (const TraceFaults& second : {TraceFaults{.numStarts = kTracedRounds}, TraceFaults{.numLosses = kAlways}}) {
    const auto owned = traced(scene, {}, second);
    const std::vector<TimedPlan*> executors = {owned[0].get(), owned[1].get()};
    const Result<Measurement> measured = measure(executors, {.iterations = 5});
    ASSERT_TRUE(measured) << measured.error().message;
    const std::size_t numTimed = second.numLosses == 0 ? 5 - kTracedRounds - 1 : 4;
    for (const PlanSamples& plan : measured->plans) {
      EXPECT_EQ(plan.endToEndNs.size(), 5u) << "kept";
      EXPECT_EQ(plan.instrumentedNs.size(), numTimed);
      EXPECT_EQ(plan.spans.size(), numTimed);
      EXPECT_TRUE(plan.activities.of(0).empty());
      for (const auto& samples : plan.stepNs)
        EXPECT_EQ(std::ranges::count(samples, 11.0), 0) << "no step that was traced";
    }
    for (const TimedPlan* const executor : executors) {
      EXPECT_EQ(executor->clock(), StepClock::Events);
      EXPECT_NE(executor->clockNote(), "");
    }
  }
}

TEST(Measure, TimesAStepWhereATraceIsGivenUpInTheLastRound) {
  const MeasuredScene scene;
  const auto owned = traced(scene, {}, {.numStarts = 1});
  const std::vector<TimedPlan*> executors = {owned[0].get(), owned[1].get()};
  const Result<Measurement> measured = measure(executors, {.iterations = 2});
  ASSERT_TRUE(measured) << measured.error().message;
  for (const PlanSamples& plan : measured->plans) {
    EXPECT_EQ(plan.endToEndNs.size(), 3u) << "one round more";
    EXPECT_EQ(plan.instrumentedNs.size(), 1u);
  }
}

/// Counts; fails from some call on.
class CountingFiller : public CacheFiller {
 public:
  explicit CountingFiller(int fails = 1 << 20) : m_fails(fails) {}
  Result<void> fill() override {
    if (++numFills < m_fails) return {};
    return Error{"The device is gone.", ErrorKind::RunFailed};
  }
  int numFills = 0;

 private:
  int m_fails;
};

TEST(Measure, FillsTheCachesBeforeEveryRunOfARound) {
  MeasuredScene scene;
  CountingFiller filler;
  ASSERT_TRUE(measure(scene.executors, {.warmup = 3, .iterations = 5, .cacheFiller = &filler}));
  EXPECT_EQ(filler.numFills, 5 * 2 * 2) << "rounds of two plans, plain and instrumented";
  CountingFiller failing(3);
  const Result<Measurement> measured = measure(scene.executors, {.iterations = 5, .cacheFiller = &failing});
  ASSERT_FALSE(measured);
  EXPECT_EQ(measured.error().message, "The device is gone.");
}

TEST(Measure, KeepsWhatTheFirstRunTook) {
  MeasuredScene scene;
  const Result<Measurement> warmed = measure(scene.executors, {.warmup = 1, .iterations = 1});
  ASSERT_TRUE(warmed);
  for (const PlanSamples& plan : warmed->plans) EXPECT_GT(plan.firstRunNs, 0.0);
  const Result<Measurement> cold = measure(scene.executors, {.warmup = 0, .iterations = 1});
  ASSERT_TRUE(cold);
  for (const PlanSamples& plan : cold->plans) EXPECT_EQ(plan.firstRunNs, 0.0);
}

TEST(Measure, StopsByItselfWithinItsBounds) {
  MeasuredScene scene;
  const MeasurementPolicy policy{.minimumRounds = 6, .maximumRounds = 9, .tightInterval = 0.0};
  const Result<Measurement> measured = measure(scene.executors, policy);
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->plans[0].endToEndNs.size(), 9u);
}

TEST(Measure, StopsAsSoonAsTheIntervalIsTight) {
  MeasuredScene scene;
  const MeasurementPolicy policy{.minimumRounds = 10, .maximumRounds = 500, .tightInterval = 1e9};
  const Result<Measurement> measured = measure(scene.executors, policy);
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->plans[0].endToEndNs.size(), 10u);
}

TEST(Measure, GivesUpOnSlowPipelinesBeforeTheMinimum) {
  MeasuredScene scene;
  const MeasurementPolicy policy{.minimumRounds = 1000000, .budget = std::chrono::duration<double>(1e-9)};
  const Result<Measurement> measured = measure(scene.executors, policy);
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->plans[0].endToEndNs.size(), 3u);
}

TEST(Measure, ReportsWarmUpThenRounds) {
  MeasuredScene scene;
  std::vector<std::string> stages;
  const auto progress = [&](std::string_view stage, int done, int total) {
    EXPECT_LT(done, total);
    if (stages.empty() || stages.back() != stage) stages.emplace_back(stage);
  };
  ASSERT_TRUE(measure(scene.executors, {.warmup = 2, .iterations = 3}, progress));
  EXPECT_EQ(stages, (std::vector<std::string>{"warming up", "measuring"}));
}

/// Cancelled when it has warmed up more often than it was asked to.
int numWarmups(std::shared_ptr<Backend> backend, int asked) {
  MeasuredScene scene;
  scene.first = *Executor::create(std::move(backend), scene.graph, scene.unfusedPlan, scene.bindings);
  TimedPlan* const plan = scene.first.get();
  std::stop_source stop;
  const auto progress = [&](std::string_view stage, int done, int) {
    if (stage == "warming up" && done > asked) stop.request_stop();
  };
  const MeasurementPolicy policy{.warmup = asked, .minimumWarmup = std::chrono::hours(1), .iterations = 1};
  return measure(std::span(&plan, 1), policy, progress, stop.get_token())->numWarmups;
}

TEST(Measure, WarmsADeviceWithAClockUpForATimeToo) {
  EXPECT_GT(numWarmups(std::make_shared<ClockedBackend>(), 2), 2);
  EXPECT_EQ(numWarmups(std::make_shared<ClockedBackend>(), 0), 0);
  EXPECT_EQ(numWarmups(makeReferenceBackend(), 2), 2);
}

TEST(Measure, KeepsOnlyCompleteRoundsWhenCancelled) {
  MeasuredScene scene;
  std::stop_source stop;
  const auto progress = [&](std::string_view stage, int done, int) {
    if (stage == "measuring" && done == 2) stop.request_stop();
  };
  const Result<Measurement> measured = measure(scene.executors, {.iterations = 100}, progress, stop.get_token());
  ASSERT_TRUE(measured);
  EXPECT_TRUE(measured->isPartial);
  for (const PlanSamples& plan : measured->plans) {
    EXPECT_EQ(plan.endToEndNs.size(), 2u);
    EXPECT_EQ(plan.instrumentedNs.size(), 2u);
    for (const auto& samples : plan.stepNs) EXPECT_EQ(samples.size(), 2u);
  }
}

}  // namespace
}  // namespace fuseline
