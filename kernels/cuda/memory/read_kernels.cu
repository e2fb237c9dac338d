// A pass over memory that leaves no dirty lines in the caches.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/memory/read_launch.h"
#include "kernels/cuda/stream/launch.h"

#include <cstdint>

namespace fuseline::cuda {

namespace {

constexpr int kReadThreads = 256;
constexpr int kReadBlocks = 1024;

/// The compiler cannot know that nothing is ever written, so that it must read.
__global__ void __launch_bounds__(kReadThreads) readWords(std::uint64_t* words, std::int64_t count) {
  std::uint64_t seen = 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kReadThreads + threadIdx.x; i < count;
       i += static_cast<std::int64_t>(gridDim.x) * kReadThreads)
    seen |= words[i];
  if (seen != 0) words[0] = seen;
}

}  // namespace

void launchRead(std::byte* memory, std::size_t sizeBytes, Stream stream) {
  launch(readWords, dim3(kReadBlocks), dim3(kReadThreads), 0, stream, reinterpret_cast<std::uint64_t*>(memory),
         static_cast<std::int64_t>(sizeBytes / sizeof(std::uint64_t)));
}

}  // namespace fuseline::cuda
