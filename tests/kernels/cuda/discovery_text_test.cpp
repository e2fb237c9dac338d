// The sentences about CUDA devices that are not there: each cause has its own, with a next step.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/discovery.h"

#include <gtest/gtest.h>

#include <set>

namespace fuseline::cuda {
namespace {

// Numbers of cudaError_t as the CUDA Runtime API documentation (section "Data types", enum cudaError) lists them.
constexpr int kDocumentedInsufficientDriver = 35;

TEST(CudaDiscovery, FormatsVersionsAsNvidiaWritesThem) {
  EXPECT_EQ("13.0", formatCudaVersion(13000));
  EXPECT_EQ("12.9", formatCudaVersion(12090));
  EXPECT_EQ("11.8", formatCudaVersion(11080));
}

TEST(CudaDiscovery, NamesBothVersionsWhenTheDriverIsTooOld) {
  const std::string words =
      explainNoDevice({.errorCode = kDocumentedInsufficientDriver, .driverVersion = 12020, .runtimeVersion = 13000});
  EXPECT_NE(std::string::npos, words.find("12.2")) << words;
  EXPECT_NE(std::string::npos, words.find("13.0")) << words;
}

TEST(CudaDiscovery, SaysThatThereIsNoDriverWhenItHasNoVersion) {
  const std::string words =
      explainNoDevice({.errorCode = kDocumentedInsufficientDriver, .driverVersion = 0, .runtimeVersion = 13000});
  EXPECT_NE(std::string::npos, words.find("No NVIDIA driver")) << words;
}

TEST(CudaDiscovery, QuotesTheRuntimeForACauseThatItDoesNotKnow) {
  const std::string words = explainNoDevice({.errorCode = 719, .errorText = "unspecified launch failure"});
  EXPECT_NE(std::string::npos, words.find("unspecified launch failure")) << words;
  EXPECT_NE(std::string::npos, words.find("719")) << words;
}

TEST(CudaDiscovery, HasAnotherSentenceForEveryCause) {
  std::set<std::string> sentences;
  for (const int code : {34, 35, 46, 100, 802, 803, 999}) sentences.insert(explainNoDevice({.errorCode = code}));
  EXPECT_EQ(7u, sentences.size());
  for (const std::string& words : sentences) EXPECT_EQ('.', words.back()) << words;
}

TEST(CudaDiscovery, RunsOnlyWhatThisBuildHasKernelsFor) {
  EXPECT_TRUE(canRun(9, 0));
  EXPECT_TRUE(canRun(10, 0));
  const Verdict old = canRun(8, 6);
  EXPECT_NE(std::string::npos, old.reason().find("8.6")) << old.reason();
  EXPECT_FALSE(canRun(12, 0));
}

}  // namespace
}  // namespace fuseline::cuda
