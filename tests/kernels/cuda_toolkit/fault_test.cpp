// Persistent failures of a GPU, and their messages.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/machine/fault.h"

#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

TEST(LastingError, IsWhatTheStreamStillSays) {
  const auto says = [](cudaError_t error) { return [error] { return error; }; };
  EXPECT_EQ(lastingError(false, says(cudaErrorIllegalAddress)), cudaErrorIllegalAddress);
  EXPECT_EQ(lastingError(false, says(cudaErrorECCUncorrectable)), cudaErrorECCUncorrectable);
  EXPECT_EQ(lastingError(false, says(cudaSuccess)), cudaSuccess) << "the call was refused, and nothing is broken";
  EXPECT_EQ(lastingError(false, says(cudaErrorNotReady)), cudaSuccess) << "the GPU works on";
}

TEST(LastingError, DoesNotAskAStreamThatIsCaptured) {
  bool isAsked = false;
  const auto query = [&] {
    isAsked = true;
    return cudaErrorStreamCaptureUnsupported;
  };
  EXPECT_EQ(lastingError(true, query), cudaSuccess);
  EXPECT_FALSE(isAsked) << "to ask it ends the capture";
}

TEST(FaultText, NamesTheDeviceTheFaultAndTheLastStep) {
  EXPECT_EQ(
      faultText(1, "an illegal memory access was encountered", "cudaErrorIllegalAddress", "fc1 (linear, forward)"),
      "cuda:1 reported a fault: an illegal memory access was encountered (cudaErrorIllegalAddress), in the step fc1 "
      "(linear, forward) or an earlier one. Start again; --no-replay and CUDA_LAUNCH_BLOCKING=1 find the step.");
  EXPECT_NE(faultText(0, "", "", "").find("in the step none or"), std::string::npos);
}

}  // namespace
}  // namespace fuseline::cuda
