// Sums of device activities, round by round.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/activity_samples.h"

#include <gtest/gtest.h>

#include <array>

namespace fuseline {
namespace {

DeviceActivity activity(const char* name, std::size_t step, double durationNs, const char* configuration = "") {
  return {.name = name, .configuration = configuration, .step = step, .durationNs = durationNs};
}

TEST(ActivitySamples, AddWhatAStepDoesSeveralTimes) {
  ActivitySamples samples;
  samples.addRound(std::array{activity("gemm", 1, 5.0), activity("add", 1, 2.0), activity("gemm", 1, 6.0)});
  samples.addRound(std::array{activity("gemm", 1, 7.0), activity("add", 1, 1.0), activity("gemm", 1, 8.0)});
  const std::vector<ActivityRecord> step = samples.of(1);
  ASSERT_EQ(step.size(), 2u);
  EXPECT_EQ(step[0].name, "gemm");
  EXPECT_EQ(step[0].samplesNs, (std::vector<double>{11.0, 15.0}));
  EXPECT_EQ(step[1].samplesNs, (std::vector<double>{2.0, 1.0}));
}

TEST(ActivitySamples, KeepStepsAndConfigurationsApart) {
  ActivitySamples samples;
  samples.addRound(std::array{activity("gemm", 1, 5.0, "grid 8"), activity("gemm", 2, 6.0, "grid 8"),
                              activity("gemm", 1, 7.0, "grid 9"), activity("fill", DeviceActivity::kNoStep, 1.0)});
  EXPECT_EQ(samples.of(1).size(), 2u);
  EXPECT_EQ(samples.of(2).size(), 1u);
  EXPECT_EQ(samples.of(DeviceActivity::kNoStep).size(), 1u);
  EXPECT_TRUE(samples.of(3).empty());
}

TEST(ActivitySamples, SayWhenEachOfThemRan) {
  ActivitySamples samples;
  samples.addRound(std::array{activity("add", 1, 1.0)});
  DeviceActivity late = activity("gemm", 1, 5.0);
  late.startNs = 7.0;
  const std::vector<TimelineSpan> spans =
      samples.addRound(std::array{activity("fill", DeviceActivity::kNoStep, 1.0), late, activity("add", 1, 2.0)});
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0].step, -1);
  EXPECT_EQ(spans[0].activity, 0);
  EXPECT_EQ(spans[1].step, 1);
  EXPECT_EQ(spans[1].startNs, 7.0);
  EXPECT_EQ(spans[1].durationNs, 5.0);
  EXPECT_EQ(samples.of(1)[static_cast<std::size_t>(spans[1].activity)].name, "gemm");
  EXPECT_EQ(samples.of(1)[static_cast<std::size_t>(spans[2].activity)].name, "add");
}

TEST(ActivitySamples, HaveASampleInEveryRound) {
  ActivitySamples samples;
  samples.addRound(std::array{activity("a", 0, 1.0)});
  samples.addRound(std::array{activity("b", 0, 2.0)});
  EXPECT_EQ(samples.of(0)[0].samplesNs, (std::vector<double>{1.0, 0.0}));
  EXPECT_EQ(samples.of(0)[1].samplesNs, (std::vector<double>{0.0, 2.0}));
}

/// [0, 10] and [4, 7] at once with it, [9, 12] partly, [20, 25] after a pause.
TEST(BusySteps, CountWhatIsDoneAtOnceOnce) {
  const std::array seen = {DeviceActivity{.step = 1, .startNs = 0.0, .durationNs = 10.0},
                           DeviceActivity{.step = 1, .startNs = 4.0, .durationNs = 3.0},
                           DeviceActivity{.step = 0, .startNs = 5.0, .durationNs = 100.0},
                           DeviceActivity{.step = DeviceActivity::kNoStep, .startNs = 6.0, .durationNs = 7.0},
                           DeviceActivity{.step = 1, .startNs = 9.0, .durationNs = 3.0},
                           DeviceActivity{.step = 1, .startNs = 20.0, .durationNs = 5.0}};
  EXPECT_EQ(busyNsBySteps(seen, 3), (std::vector<double>{100.0, 17.0, 0.0}));
  EXPECT_EQ(startNsBySteps(seen, 3), (std::vector<double>{5.0, 0.0, 0.0}));
}

}  // namespace
}  // namespace fuseline
