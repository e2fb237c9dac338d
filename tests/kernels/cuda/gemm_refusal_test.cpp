// Messages about GEMMs that the library does not support: a remedy for the GPU at hand.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/gemm_refusal.h"

#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

GemmProblem refusedProblem(Scaling scaling) {
  const FactorCodes codes{.scaling = scaling};
  return {.m = 16, .n = 32, .k = 48, .factorType = DType::BF16, .aCodes = codes, .bCodes = codes, .cType = DType::BF16};
}

bool says(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST(GemmRefusal, NamesTheProduct) {
  const GemmProblem plain{.m = 3, .n = 5, .k = 7, .factorType = DType::F16, .cType = DType::F16};
  EXPECT_EQ(refusalOf(plain, 9),
            "cuBLASLt has no algorithm for the GEMM 3 x 5 x 7 in f16 on this GPU. Make its sizes multiples of 8.");
  EXPECT_TRUE(says(refusalOf(refusedProblem(Scaling::PerTensor), 9), "Make its sizes multiples of 16, choose another"));
}

TEST(GemmRefusal, DoesNotAdviseOtherExtentsWhereTheGpuHasNoSuchBlocks) {
  const std::string onBlackwell = refusalOf(refusedProblem(Scaling::Block1x128), 10);
  EXPECT_TRUE(says(onBlackwell, "they become MXFP8 blocks")) << onBlackwell;
  EXPECT_FALSE(says(onBlackwell, "multiples of"));
  const std::string onHopper = refusalOf(refusedProblem(Scaling::Mx1x32), 9);
  EXPECT_TRUE(says(onHopper, "only on compute capability 10.0 and newer")) << onHopper;
  EXPECT_FALSE(says(onHopper, "multiples of"));
  EXPECT_TRUE(says(refusalOf(refusedProblem(Scaling::Block1x128), 9), "CUDA 12.9"));
  EXPECT_TRUE(says(refusalOf(refusedProblem(Scaling::Mx1x32), 10), "multiples of"));
}

}  // namespace
}  // namespace fuseline::cuda
