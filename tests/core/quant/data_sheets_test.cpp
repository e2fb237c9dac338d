// Published figures of GPUs.
// SPDX-License-Identifier: Apache-2.0
#include "core/quant/data_sheets.h"

#include <gtest/gtest.h>

namespace fuseline {
namespace {

TEST(DataSheets, AreKnownByTheNameOfTheDriver) {
  ASSERT_TRUE(dataSheetOf("NVIDIA H200"));
  EXPECT_EQ(dataSheetOf("NVIDIA H200")->memoryGBps, 4800);
  EXPECT_EQ(dataSheetOf("NVIDIA H100 80GB HBM3")->memoryGBps, 3350);
  EXPECT_FALSE(dataSheetOf("NVIDIA H200 NVL"));  // another form, with other peaks
  EXPECT_FALSE(dataSheetOf("cpu"));
}

/// Tensor cores of this generation process 8-bit values at twice the rate of 16-bit ones, within the sheets' rounding.
TEST(DataSheets, AreOfProductsWithoutSparsity) {
  for (const char* device : {"NVIDIA H200", "NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe"}) {
    const DataSheet sheet = *dataSheetOf(device);
    EXPECT_NEAR(sheet.fp8Gflops / sheet.bf16Gflops, 2.0, 0.01) << device;
    EXPECT_LT(sheet.f32Gflops, sheet.bf16Gflops / 10) << device;
  }
}

}  // namespace
}  // namespace fuseline
