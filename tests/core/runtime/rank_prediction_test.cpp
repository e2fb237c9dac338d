// Times on several ranks against the formulas of rings, by hand.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/rank_prediction.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

TEST(RankLink, IsANameOrTwoNumbers) {
  const Result<RankLink> given = parseLink("5us,10GB/s");
  ASSERT_TRUE(given) << given.error().message;
  EXPECT_EQ(given->protocols.front().hopUs, 5.0);
  EXPECT_EQ(given->protocols.front().bandwidthGBps, 10.0);
  EXPECT_TRUE(parseLink("nvlink4"));
  for (const char* text : {"", "nvlink", "5us", "5us,10GB/s,", "-1us,10GB/s", "5us,0GB/s", "nanus,10GB/s"})
    EXPECT_FALSE(parseLink(text)) << text;
  EXPECT_EQ(parseLink("slow").error().message,
            "--link slow: expected nvlink4, pcie5, or a latency and a bandwidth such as 5us,100GB/s.");
}

// A ring of 4: 3 hops for an all-gather, 6 for an all-reduce. 100 MB at 10 GB/s are 10 ms.
TEST(CollectiveTime, IsHopsAndBytes) {
  const RankLink link = *parseLink("1000us,10GB/s");
  const TimeRange gather = collectiveTime(link, "all-gather", 100e6, 4);
  EXPECT_DOUBLE_EQ(gather.lowNs, 0.85 * 13e6);
  EXPECT_DOUBLE_EQ(gather.highNs, 1.15 * 13e6);
  EXPECT_DOUBLE_EQ(collectiveTime(link, "all-reduce", 10e6, 4).highNs, 1.3 * 7e6);
  const TimeRange small = collectiveTime(*parseLink("5us,10GB/s"), "reduce-scatter", 1000, 2);
  EXPECT_EQ(small.lowNs, 0.0);
  EXPECT_DOUBLE_EQ(small.highNs, 5000.0 + 100.0 + 10000.0);
}

// The table of NCCL's model in the literature: 67.1 MB gathered by 8 GPUs of one node take 32.2 + 159 us.
TEST(CollectiveTime, OfNvlinkIsThatOfNccl) {
  const TimeRange range = collectiveTime(*parseLink("nvlink4"), "all-gather", 67.1e6 * 7 / 8, 8);
  const double middleNs = 0.5 * (range.lowNs + range.highNs);
  EXPECT_NEAR(middleNs, 191e3, 3e3);
}

TEST(Prediction, AddsComputingAndCommunication) {
  RunRecord rank0;
  rank0.settings.ranks = 2;
  VariantRecord& fused = rank0.variants.emplace_back(VariantRecord{.name = "fused"});
  fused.steps.push_back({.name = "fc1", .samplesNs = {10.0, 20.0, 30.0}});
  fused.steps.push_back(
      {.name = "gather", .samplesNs = {5.0, 5.0, 5.0}, .collective = "all-gather", .wireBytes = 1000});
  const std::vector<RankPrediction> predictions = predict(rank0, *parseLink("50us,10GB/s"));
  ASSERT_EQ(predictions.size(), 1u);
  EXPECT_EQ(predictions.front().computeNs, 20.0);
  EXPECT_EQ(predictions.front().wireBytes, 1000);
  EXPECT_DOUBLE_EQ(predictions.front().total().lowNs, 15.0 + 40100.0);
  EXPECT_DOUBLE_EQ(predictions.front().total().highNs, 25.0 + 60100.0);
}

}  // namespace
}  // namespace fuseline
