// Warnings about doubtful measurements, and none about others.
// SPDX-License-Identifier: Apache-2.0
#include "core/profile/doubts.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

RunRecord runOf(Arithmetic arithmetic, std::int64_t flops, std::int64_t bytes, double timeNs) {
  RunRecord record;
  record.peaks = DevicePeaks{.copyGBps = 10, .fmaF32Gflops = 5, .bf16Gflops = 20, .fp8Gflops = 0};
  record.variants = {{.name = "fused",
                      .steps = {{.name = "fc1",
                                 .phase = "forward",
                                 .arithmetic = arithmetic,
                                 .flops = flops,
                                 .bytes = bytes,
                                 .samplesNs = {timeNs, timeNs, timeNs}}}}};
  return record;
}

TEST(Doubts, NobodyHasAboutAQuietRun) {
  EXPECT_TRUE(doubtsOf(runOf(Arithmetic::Bf16, 6000, 100, 600)).empty());
  EXPECT_TRUE(doubtsOf(RunRecord()).empty());
}

TEST(Doubts, NameWhatOthersTook) {
  RunRecord record = runOf(Arithmetic::Bf16, 6000, 100, 600);
  record.environment.emplace_back("other programs", "48 % of the CPUs");
  ASSERT_EQ(doubtsOf(record).size(), 1U);
  EXPECT_TRUE(doubtsOf(record)[0].starts_with("Other programs used 48 % of the CPUs during the rounds"));
}

// 6000 FLOP at 20 FLOP/ns take 300 ns.
TEST(Doubts, NameAStepThatIsFasterThanItsPeak) {
  const std::vector<std::string> doubts = doubtsOf(runOf(Arithmetic::Bf16, 6000, 100, 100));
  ASSERT_EQ(doubts.size(), 1U);
  EXPECT_TRUE(doubts[0].starts_with("fc1 (forward) was 3.0 times as fast as the bf16 peak")) << doubts[0];
  EXPECT_TRUE(doubtsOf(runOf(Arithmetic::Bf16, 6000, 100, 290)).empty()) << "scatter";
  EXPECT_TRUE(doubtsOf(runOf(Arithmetic::F32, 10, 100, 1)).empty()) << "a cache is faster than memory";
}

}  // namespace
}  // namespace fuseline
