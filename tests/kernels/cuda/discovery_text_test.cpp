// The sentences about CUDA devices that are not there: each cause has its own, with a next step.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/machine/discovery.h"

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

std::string unseen(DriverFacts driver, std::optional<std::string> visible = std::nullopt) {
  return explainNoDevice({.errorCode = kNoDevice, .driver = std::move(driver), .visibleDevices = std::move(visible)});
}

TEST(CudaDiscovery, SaysWhyTheGpusOfTheDriverAreNotSeen) {
  EXPECT_NE(std::string::npos, unseen({.numGpus = 2, .numDivided = 2}).find("in MIG mode"));
  EXPECT_NE(std::string::npos,
            unseen({.numGpus = 2}, "7").find("CUDA_VISIBLE_DEVICES is \"7\", which selects none of the 2"));
  EXPECT_NE(std::string::npos, unseen({.numGpus = 2}).find("/dev/nvidia"));
  EXPECT_EQ(unseen({.numGpus = 0}, "7"), unseen({}));
}

TEST(CudaDiscovery, HasAnotherSentenceForEveryRefusalOfAContext) {
  std::set<std::string> sentences;
  for (const int code : {2, 46, 999}) sentences.insert(explainNoContext(code, "words"));  // numbers of cudaError_t
  EXPECT_EQ(3u, sentences.size());
  EXPECT_NE(std::string::npos, explainNoContext(46, "words").find("exclusive mode"));
  EXPECT_NE(std::string::npos, explainNoContext(2, "words").find("memory"));
  EXPECT_NE(std::string::npos, explainNoContext(999, "words").find("words (error 999)"));
}

TEST(CudaDiscovery, NamesTheDriverAndTheCudaThatItSupports) {
  EXPECT_EQ(driverText({}), "none");
  EXPECT_EQ(driverText({.driverVersion = 13000}), "supports CUDA 13.0");
  EXPECT_EQ(driverText({.driverVersion = 13000, .driver = {.version = "580.65.06"}}), "580.65.06, supports CUDA 13.0");
}

/// Numbers of cudaComputeMode as the CUDA Runtime API documentation lists them: 0 default, 2 prohibited, 3 exclusive.
TEST(CudaDiscovery, KeepsOutOfGpusThatAdmitNobodyElse) {
  EXPECT_TRUE(isOpen(0, false));
  EXPECT_TRUE(isOpen(0, true));
  EXPECT_TRUE(isOpen(3, false));
  EXPECT_NE(std::string::npos, isOpen(3, true).reason().find("another process uses it"));
  for (const bool isInUse : {false, true}) EXPECT_NE(std::string::npos, isOpen(2, isInUse).reason().find("Prohibited"));
}

}  // namespace
}  // namespace fuseline::cuda
