// Which code runs on which GPU: NVIDIA's Programming Guide, "Binary Compatibility" and "PTX Compatibility".
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/support/gpu_target.h"

#include <array>

#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

constexpr const char* kAll = "80-real 86-real 89-real 90-real 100-real 103-real 110-real 120-real 120-virtual";

TEST(GpuTarget, IsThereForEveryGpuFromAmpereOn) {
  for (const ComputeCapability gpu :
       {ComputeCapability{8, 0}, {8, 6}, {8, 7}, {8, 9}, {9, 0}, {10, 0}, {10, 3}, {11, 0}, {12, 0}, {12, 1}, {13, 0}})
    EXPECT_TRUE(hasKernelsFor(gpu, kAll)) << toString(gpu);
}

TEST(GpuTarget, IsNotThereForGpusWithoutBfloat16) {
  const Verdict turing = hasKernelsFor({7, 5}, kAll);
  EXPECT_NE(turing.reason().find("Its compute capability is 7.5, but the kernels need 8.0"), std::string::npos)
      << turing.reason();
}

TEST(GpuTarget, RunsMachineCodeOfItsMajorNumberOnly) {
  EXPECT_TRUE(hasKernelsFor({8, 9}, "86-real"));
  EXPECT_FALSE(hasKernelsFor({8, 0}, "86-real"));
  EXPECT_FALSE(hasKernelsFor({9, 0}, "86-real"));
  EXPECT_FALSE(hasKernelsFor({12, 0}, "100-real"));
}

TEST(GpuTarget, RunsPtxOfEveryEarlierGpu) {
  EXPECT_TRUE(hasKernelsFor({12, 0}, "89-virtual"));
  EXPECT_TRUE(hasKernelsFor({12, 0}, "80-real 90"));
  EXPECT_FALSE(hasKernelsFor({8, 6}, "89-virtual"));
}

TEST(GpuTarget, RunsCodeWithFeaturesOfOneGpuOnThatOne) {
  EXPECT_TRUE(hasKernelsFor({9, 0}, "90a"));
  EXPECT_FALSE(hasKernelsFor({10, 0}, "90a"));
  EXPECT_TRUE(hasKernelsFor({10, 3}, "100f"));
  EXPECT_FALSE(hasKernelsFor({12, 0}, "100f"));
}

TEST(GpuTarget, SaysHowKernelsAreBuiltThatAreMissing) {
  const Verdict ampere = hasKernelsFor({8, 6}, "89-real 90");
  EXPECT_EQ(ampere.reason(),
            "Its compute capability is 8.6, but this build has kernels only for 8.9, 9.0 and newer. Configure with "
            "-DFUSELINE_CUDA_ARCHITECTURES=86, or with all.");
}

TEST(GpuTarget, OfNvrtcIsTheNearestThatItKnows) {
  constexpr std::array kKnown = {75, 80, 86, 87, 89, 90, 100, 103, 110, 120};
  EXPECT_EQ(nvrtcTargetFor({8, 6}, kKnown), "sm_86");
  EXPECT_EQ(nvrtcTargetFor({12, 0}, kKnown), "sm_120");
  EXPECT_EQ(nvrtcTargetFor({12, 1}, kKnown), "sm_120");
  EXPECT_EQ(nvrtcTargetFor({13, 0}, kKnown), "compute_120");
  EXPECT_EQ(nvrtcTargetFor({9, 0}, {}), "sm_90");
}

}  // namespace
}  // namespace fuseline::cuda
