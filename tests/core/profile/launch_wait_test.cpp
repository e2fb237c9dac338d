// Time that the device waited for the host, on timelines with waits computed by hand.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/launch_wait.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fuseline {
namespace {

VariantRecord variantOf(std::size_t numSteps, Timeline timeline) {
  VariantRecord variant{.name = "fused", .timeline = std::move(timeline)};
  for (std::size_t i = 0; i < numSteps; ++i)
    variant.steps.push_back(
        {.name = "s" + std::to_string(i), .phase = "forward", .kernel = "K", .activities = {{"k", "", {}}}});
  return variant;
}

/// From mark to mark: s0 is launched at once, s1 when the device has been idle for 40 of its 50 ns, s2 long before.
TEST(LaunchWait, IsPartOfAStepThatIsTimedBetweenMarks) {
  const VariantRecord variant = variantOf(3, {.spans = {{.step = 0, .startNs = 0, .durationNs = 100},
                                                        {.step = 1, .startNs = 100, .durationNs = 50},
                                                        {.step = 2, .startNs = 150, .durationNs = 200}},
                                              .launches = {{.step = 0, .startNs = 0, .durationNs = 5},
                                                           {.step = 1, .startNs = 130, .durationNs = 10},
                                                           {.step = 2, .startNs = 140, .durationNs = 5}}});
  EXPECT_EQ(launchWaitsNs(variant), (std::vector<double>{5.0, 40.0, 0.0}));
  const std::optional<LaunchWaits> waits = launchWaits(variant);
  ASSERT_TRUE(waits);
  EXPECT_EQ(waits->numWaiting, 1);
  EXPECT_EQ(waits->numSteps, 3);
  EXPECT_EQ(waits->waitedNs, 45.0);
  EXPECT_EQ(
      launchWaitText(variant),
      "fused: 1 of 3 steps waited longer for their launch than they ran. All waits together took 45 ns of 350 ns.");
}

/// The second kernel starts 60 ns after the first one ended; the host was busy launching it for the first 25 of them.
TEST(LaunchWait, LiesBeforeAStepWhoseKernelsWereTraced) {
  const VariantRecord variant = variantOf(
      2, {.spans = {{.step = 0, .activity = 0, .startNs = 10, .durationNs = 30},
                    {.step = 1, .activity = 0, .startNs = 100, .durationNs = 20}},
          .launches = {{.step = 0, .startNs = 0, .durationNs = 8}, {.step = 1, .startNs = 50, .durationNs = 15}}});
  EXPECT_EQ(launchWaitsNs(variant), (std::vector<double>{8.0, 25.0}));
  EXPECT_EQ(launchWaits(variant)->numWaiting, 1) << "25 ns are longer than the 20 ns that it ran";
}

TEST(LaunchWait, IsNotKnownOfRecordedLaunchesOrOlderFiles) {
  const std::vector<TimelineSpan> spans = {{.step = 0, .startNs = 0, .durationNs = 100}};
  EXPECT_TRUE(launchWaitsNs(variantOf(1, {.spans = spans})).empty());
  const VariantRecord recorded = variantOf(1, {.spans = spans, .launches = {{.step = -1, .durationNs = 5}}});
  EXPECT_TRUE(launchWaitsNs(recorded).empty());
  EXPECT_FALSE(launchWaits(recorded));
  EXPECT_EQ(launchWaitText(recorded), "");
}

RC_GTEST_PROP(LaunchWaitProperty, IsNeverLongerThanTheRound, ()) {
  Timeline timeline;
  const auto numSteps = *rc::gen::inRange<std::size_t>(1, 8);
  double markNs = 0.0;
  double hostNs = 0.0;
  for (std::size_t i = 0; i < numSteps; ++i) {
    const auto durationNs = static_cast<double>(*rc::gen::inRange(0, 100));
    const auto launchNs = static_cast<double>(*rc::gen::inRange(0, 100));
    timeline.spans.push_back({.step = static_cast<int>(i), .startNs = markNs, .durationNs = durationNs});
    timeline.launches.push_back({.step = static_cast<int>(i), .startNs = hostNs, .durationNs = launchNs});
    markNs += durationNs;
    hostNs += launchNs;
  }
  const std::optional<LaunchWaits> waits = launchWaits(variantOf(numSteps, timeline));
  RC_ASSERT(waits.has_value());
  RC_ASSERT(waits->waitedNs >= 0.0);
  RC_ASSERT(waits->waitedNs <= waits->totalNs);
  RC_ASSERT(waits->numWaiting <= waits->numSteps);
}

}  // namespace
}  // namespace fuseline
