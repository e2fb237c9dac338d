// One thread that watches the clock of its multiprocessor.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/stream/delay_launch.h"

#include "kernels/cuda/stream/launch.h"

#include <cstdint>

#include <cuda_runtime.h>

namespace fuseline::cuda {

namespace {

__global__ void delay(std::int64_t cycles) {
  const std::int64_t begin = clock64();
#pragma unroll 1
  while (clock64() - begin < cycles) {
  }
}

}  // namespace

void launchDelay(std::int64_t cycles, Stream stream) { launch(delay, dim3(1), dim3(1), 0, stream, cycles); }

}  // namespace fuseline::cuda
