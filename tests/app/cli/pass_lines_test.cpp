// The lines that benchmarks draw for a GPU.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/pass_lines.h"

#include <gtest/gtest.h>

namespace fuseline::cli {
namespace {

TEST(PassLines, AreLowerForWhatWritesTransposedCopies) {
  EXPECT_EQ(wantedShare({.kernel = "rmsnorm"}, true), 0.85);
  EXPECT_EQ(wantedShare({.kernel = "quantize"}, true), 0.75);
  EXPECT_EQ(wantedShare({.kernel = "rmsnorm", .absorbs = {"down.input"}}, true), 0.75);
  EXPECT_EQ(wantedShare({.kernel = "BasicLinear"}, false), 0.90);
}

TEST(PassLines, AllowASpeedUpFivePercentBelowItsCeiling) {
  EXPECT_TRUE(isNearCeiling({.median = 1.30}, 1.31));
  EXPECT_TRUE(isNearCeiling({.median = 1.40}, 1.31));
  EXPECT_FALSE(isNearCeiling({.median = 1.24}, 1.31));
}

TEST(PassLines, AllowATraceTwoPercentOfTheRun) {
  EXPECT_TRUE(isCheapTrace(101.9, 100.0));
  EXPECT_TRUE(isCheapTrace(99.0, 100.0));
  EXPECT_FALSE(isCheapTrace(102.1, 100.0));
}

}  // namespace
}  // namespace fuseline::cli
