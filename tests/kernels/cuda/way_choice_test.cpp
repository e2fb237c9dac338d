// Choices that are made once.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/way_choice.h"

#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

const AlgorithmOrigin kHopperOrigin{.device = "NVIDIA H200", .driver = "13000", .library = "130100"};
constexpr AlgorithmChoice kSecond{.candidate = 1, .medianNs = 50.0, .firstMedianNs = 70.0, .numTimed = 2};

/// A contest that counts how often it is held.
struct Counted {
  AlgorithmChoice choice;
  int numHeld = 0;
  AlgorithmChoice operator()() {
    ++numHeld;
    return choice;
  }
};

TEST(WayChoice, IsTimedOnceAndOutlivesTheProcess) {
  const testing::TemporaryFolder folder;
  Counted contest{kSecond};
  for (int process = 0; process < 2; ++process) {
    AlgorithmCache cache(folder.path(), kHopperOrigin);
    for (int time = 0; time < 2; ++time) EXPECT_EQ(keptOr(cache, "p", 2, std::ref(contest)), 1u);
  }
  EXPECT_EQ(contest.numHeld, 1);
  const auto kept = AlgorithmCache(folder.path(), kHopperOrigin).find("p");
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->medianNs, 50.0);
  EXPECT_EQ(kept->firstMedianNs, 70.0);
}

TEST(WayChoice, IsNotKeptWhereNothingWasTimed) {
  AlgorithmCache cache({}, kHopperOrigin);
  Counted contest{{}};
  for (int time = 0; time < 2; ++time) EXPECT_EQ(keptOr(cache, "p", 2, std::ref(contest)), 0u);
  EXPECT_EQ(contest.numHeld, 2);
}

/// A file may say anything.
TEST(WayChoice, IsMadeAgainWhereTheKeptOneIsNone) {
  for (const std::int64_t candidate : {-1, 2}) {
    AlgorithmCache cache({}, kHopperOrigin);
    cache.keep("p", {.candidate = candidate, .medianNs = 1.0});
    Counted contest{kSecond};
    EXPECT_EQ(keptOr(cache, "p", 2, std::ref(contest)), 1u);
    EXPECT_EQ(contest.numHeld, 1);
  }
}

}  // namespace
}  // namespace fuseline::cuda
