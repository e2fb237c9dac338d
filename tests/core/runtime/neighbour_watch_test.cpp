// CPU time of other programs: the text of proc(5), and shares of it.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/neighbour_watch.h"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fuseline::testing {
namespace {

// The example of proc(5): user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice.
TEST(NeighbourWatch, ReadsTheFirstLineOfProcStat) {
  const auto times =
      cpuTimesIn("cpu  10132153 290696 3084719 46828483 16683 0 25195 0 175628 0\ncpu0 1 2 3 4\n", 100.0);
  ASSERT_TRUE(times);
  EXPECT_DOUBLE_EQ(times->busy, (10132153.0 + 290696.0 + 3084719.0 + 25195.0) / 100.0);
  EXPECT_DOUBLE_EQ(times->idle, (46828483.0 + 16683.0) / 100.0);
  for (const char* text : {"", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8", "cpu a b c d e f g h"})
    EXPECT_FALSE(cpuTimesIn(text, 100.0)) << text;
}

TEST(NeighbourWatch, SharesOutWhatThisProgramDidNotTake) {
  const CpuTimes before{.busy = 100.0, .idle = 50.0};
  EXPECT_DOUBLE_EQ(neighboursShare(before, {.busy = 104.0, .idle = 50.0}, 2.0), 0.5);   // two CPUs for two seconds
  EXPECT_DOUBLE_EQ(neighboursShare(before, {.busy = 102.0, .idle = 52.0}, 2.0), 0.0);   // one is ours, one idles
  EXPECT_DOUBLE_EQ(neighboursShare(before, {.busy = 102.0, .idle = 52.0}, 2.04), 0.0);  // the system counts coarsely
  EXPECT_DOUBLE_EQ(neighboursShare(before, before, 0.0), 0.0);
}

TEST(NeighbourWatch, IsAShareWhateverTheTimes) {
  EXPECT_TRUE(rc::check([](double busy, double idle, double own) {
    const double share = neighboursShare({}, {.busy = std::abs(busy), .idle = std::abs(idle)}, std::abs(own));
    RC_ASSERT(share >= 0.0 && share <= 1.0);
  }));
}

}  // namespace
}  // namespace fuseline::testing
