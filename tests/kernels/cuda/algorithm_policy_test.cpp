// FUSELINE_TUNE and the folder, as the environment gives them.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/algorithm_policy.h"

#include <string_view>

#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

AlgorithmPolicy policyWith(const char* tune, const char* home, const char* tf32 = nullptr) {
  return algorithmPolicy([=](const char* name) -> const char* {
    if (std::string_view(name) == "FUSELINE_TUNE") return tune;
    if (std::string_view(name) == "FUSELINE_TF32") return tf32;
    return std::string_view(name) == "HOME" ? home : nullptr;
  });
}

TEST(AlgorithmPolicy, TimesUnlessItIsTurnedOff) {
  EXPECT_TRUE(policyWith(nullptr, "/home/ada").isTimed);
  EXPECT_TRUE(policyWith("", "/home/ada").isTimed);
  EXPECT_TRUE(policyWith("on", "/home/ada").isTimed);
  EXPECT_FALSE(policyWith("off", "/home/ada").isTimed);
}

TEST(AlgorithmPolicy, KeepsFloat32UnlessTf32IsAskedFor) {
  EXPECT_FALSE(policyWith(nullptr, nullptr).usesTf32);
  EXPECT_FALSE(policyWith(nullptr, nullptr, "off").usesTf32);
  EXPECT_TRUE(policyWith(nullptr, nullptr, "on").usesTf32);
}

TEST(AlgorithmPolicy, SaysWhatItIsButNotWhoseFolderItUses) {
  EXPECT_EQ(describe(policyWith(nullptr, "/home/ada")),
            "algorithms timed, and cached for the next run; float32 not rounded");
  EXPECT_EQ(describe(policyWith(nullptr, nullptr, "on")),
            "algorithms timed in every run, because there is no cache folder; float32 in TF32 (FUSELINE_TF32=on)");
  EXPECT_EQ(describe(policyWith("off", "/home/ada")),
            "cuBLASLt's top heuristic (FUSELINE_TUNE=off); float32 not rounded");
}

}  // namespace
}  // namespace fuseline::cuda
