// Makes this test program behave like a CPU without AVX-512: Highway and oneDNN both choose AVX2.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/machine/cpu_info.h"

#include <cstdlib>

#include <gtest/gtest.h>
#include <hwy/detect_targets.h>
#include <hwy/targets.h>

namespace fuseline::cpu {
namespace {

/// Before main, so before either library has looked at the CPU.
const bool kIsRestricted = [] {
  setenv("DNNL_MAX_CPU_ISA", "AVX2", 1);
  hwy::DisableTargets(HWY_AVX3 | HWY_AVX3_DL);
  return true;
}();

TEST(Avx2, IsWhatBothLibrariesUse) {
  ASSERT_TRUE(kIsRestricted);
  EXPECT_EQ(hwy::SupportedTargets() & HWY_AVX3, 0);
  EXPECT_FALSE(hasNativeBf16Gemm());
}

}  // namespace
}  // namespace fuseline::cpu
