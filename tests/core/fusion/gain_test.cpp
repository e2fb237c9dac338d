// Gains as times, as sums and as text.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/gain.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

const DeviceModel kDevice{.bandwidthBytesPerSecond = 2e9, .launchSeconds = 3e-6, .source = "a test"};

TEST(PredictedNs, IsBytesOverBandwidthAndLaunches) {
  // 8,000 bytes at 2 GB/s take 4 us, two launches 6 us.
  EXPECT_NEAR(*predictedNs({.bytes = 8000, .launches = 2}, kDevice), 10e3, 1e-9);
}

TEST(PredictedNs, NeedsAMeasuredDevice) { EXPECT_FALSE(predictedNs({.bytes = 8000, .launches = 2}, {})); }

TEST(GainText, SaysTimesOnlyWhereADeviceWasMeasured) {
  EXPECT_EQ(gainText({.bytes = 8192, .launches = 2}, nullptr, {}), "predicted to save 8 KiB and 2 launches");
  EXPECT_EQ(gainText({.bytes = 8000, .launches = 2}, nullptr, kDevice),
            "predicted to save 10.0 us (7.81 KiB and 2 launches)");
}

TEST(GainText, AFigureStandsBesideTheEstimate) {
  const MeasuredGain slower{
      .gainNs = -2500, .speedup = 0.9, .speedupLow = 0.88, .speedupHigh = 0.92, .device = "a test device"};
  EXPECT_EQ(gainText({.bytes = 8192}, &slower, kDevice),
            "predicted to save 4.10 us (8 KiB) but measured to lose 2.50 us (0.90x, 95 % interval 0.88 to 0.92) on a "
            "test device");
}

TEST(GainOf, ADifferenceWithinTheSpreadLeavesTheEstimate) {
  const MeasuredGain noise{.gainNs = 2500, .speedup = 1.1, .speedupLow = 0.9, .speedupHigh = 1.2};
  EXPECT_EQ(gainOf({.bytes = 8192, .launches = 1}, &noise), (Gain{.bytes = 8192, .launches = 1}));
  const MeasuredGain faster{.gainNs = 2500, .speedup = 1.1, .speedupLow = 1.05, .speedupHigh = 1.2};
  EXPECT_EQ(gainOf({.bytes = 8192, .launches = 1}, &faster), Gain{.measuredPs = 2'500'000});
}

TEST(Exceeds, AMeasuredTimeIsSetAgainstAPredictedOne) {
  const Gain measured{.measuredPs = 3'000'000};  // 3 us
  EXPECT_TRUE(exceeds({.bytes = 8000}, measured, kDevice));
  EXPECT_TRUE(exceeds(measured, {.bytes = 4000}, kDevice));
}

TEST(Exceeds, OnANeutralDeviceAFigureGoesBeforeAnEstimate) {
  EXPECT_TRUE(exceeds({.measuredPs = 1}, {.bytes = 1 << 30, .launches = 9}, {}));
}

}  // namespace
}  // namespace fuseline
