// FUSELINE_TUNE and the folder, as the environment gives them.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/algorithm_policy.h"

#include <string_view>

#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

AlgorithmPolicy policyWith(const char* tune, const char* home) {
  return algorithmPolicy([=](const char* name) -> const char* {
    if (std::string_view(name) == "FUSELINE_TUNE") return tune;
    return std::string_view(name) == "HOME" ? home : nullptr;
  });
}

TEST(AlgorithmPolicy, TimesUnlessItIsTurnedOff) {
  EXPECT_TRUE(policyWith(nullptr, "/home/ada").isTimed);
  EXPECT_TRUE(policyWith("", "/home/ada").isTimed);
  EXPECT_TRUE(policyWith("on", "/home/ada").isTimed);
  EXPECT_FALSE(policyWith("off", "/home/ada").isTimed);
}

TEST(AlgorithmPolicy, SaysWhatItIs) {
  EXPECT_EQ(describe(policyWith(nullptr, "/home/ada")),
            "algorithms timed and kept in /home/ada/.cache/fuseline/algorithms");
  EXPECT_EQ(describe(policyWith(nullptr, nullptr)),
            "algorithms timed in every run, for want of a folder to keep them in");
  EXPECT_EQ(describe(policyWith("off", "/home/ada")), "the library's own first choice (FUSELINE_TUNE=off)");
}

}  // namespace
}  // namespace fuseline::cuda
