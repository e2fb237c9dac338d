// Words travel as parameters of a kernel, of which CUDA copies at least 4 KiB with every launch.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/memory/word_launch.h"
#include "kernels/cuda/stream/launch.h"

#include <algorithm>

#include <cuda_runtime.h>

namespace fuseline::cuda {

namespace {

constexpr std::size_t kWordsAtOnce = 480;

struct Words {
  std::uint64_t values[kWordsAtOnce];
  unsigned count;
};

__global__ void __launch_bounds__(kWordsAtOnce) storeWords(const __grid_constant__ Words words, std::uint64_t* to) {
  if (threadIdx.x < words.count) to[threadIdx.x] = words.values[threadIdx.x];
}

}  // namespace

void launchStoreWords(std::span<const std::uint64_t> words, std::byte* to, Stream stream) {
  auto* const first = reinterpret_cast<std::uint64_t*>(to);
  for (std::size_t begin = 0; begin < words.size(); begin += kWordsAtOnce) {
    const auto part = words.subspan(begin, std::min(kWordsAtOnce, words.size() - begin));
    Words parameters{.values = {}, .count = static_cast<unsigned>(part.size())};
    std::ranges::copy(part, parameters.values);
    launch(storeWords, dim3(1), dim3(kWordsAtOnce), 0, stream, parameters, first + begin);
  }
}

}  // namespace fuseline::cuda
