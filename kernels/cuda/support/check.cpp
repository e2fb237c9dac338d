// The sentence of a failed CUDA call.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/support/check.h"

#include <fmt/format.h>

namespace fuseline::cuda {

void check(cudaError_t error, const char* action) {
  if (error == cudaSuccess) return;
  throw DeviceFault(
      fmt::format("The GPU could not {}: {} ({}).", action, cudaGetErrorString(error), cudaGetErrorName(error)));
}

void useDevice(int device) { check(cudaSetDevice(device), "be selected"); }

int selectedDevice() {
  int device = 0;
  check(cudaGetDevice(&device), "report the current GPU");
  return device;
}

}  // namespace fuseline::cuda
