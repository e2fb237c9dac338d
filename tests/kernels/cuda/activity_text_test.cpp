// Names and shapes of kernels in words.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/trace/activity_text.h"

#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

TEST(KernelName, IsTheNameInTheSource) {
  EXPECT_EQ(kernelName("_ZN8fuseline4cuda4normIfLi4EEEvPKT_m"), "fuseline::cuda::norm<float, 4>");
  EXPECT_EQ(kernelName("_Z3addPfi"), "add");
  EXPECT_EQ(kernelName("_ZN8fuseline12_GLOBAL__N_13addEPf"), "fuseline::add");
}

TEST(KernelName, KeepsFunctionsAmongTemplateArguments) {
  EXPECT_EQ(kernelName("_Z5applyIXadL_Z3addiiEEEvPi"), "apply<&(add(int, int))>");
}

TEST(KernelName, LeavesWhatIsNotMangled) {
  EXPECT_EQ(kernelName("nvjet_tst_128x256_64x4_2x1_v_bz_TNN"), "nvjet_tst_128x256_64x4_2x1_v_bz_TNN");
  EXPECT_EQ(kernelName(""), "");
}

TEST(KernelShapes, NameWhatIsThere) {
  EXPECT_EQ(toString(KernelShape{.grid = {128, 2, 1}, .block = {256, 1, 1}, .registersPerThread = 32}),
            "grid 128x2, block 256, 32 registers");
  EXPECT_EQ(
      toString(KernelShape{.grid = {1, 1, 3}, .cluster = {2, 1, 1}, .registersPerThread = 168, .sharedBytes = 1024}),
      "grid 1x1x3, block 1, cluster 2, 168 registers, 1 KiB shared memory");
}

}  // namespace
}  // namespace fuseline::cuda
