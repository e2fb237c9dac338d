// Tells a fault from a refused call.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/machine/fault.h"

#include <fmt/format.h>

namespace fuseline::cuda {

cudaError_t lastingError(bool isCapturing, const std::function<cudaError_t()>& query) {
  if (isCapturing) return cudaSuccess;
  const cudaError_t error = query();
  return error == cudaErrorNotReady ? cudaSuccess : error;
}

std::string faultText(int device, const std::string& words, const std::string& name, const std::string& lastStep) {
  return fmt::format(
      "cuda:{} reported a fault: {} ({}), in the step {} or an earlier one. Start again; --no-replay and "
      "CUDA_LAUNCH_BLOCKING=1 find the step.",
      device, words, name, lastStep.empty() ? "none" : lastStep);
}

}  // namespace fuseline::cuda
