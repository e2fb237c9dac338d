// Adds the tensors of ranks element by element, as core/collective/ordered_reduction does on the host.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/collective/rank_sum_launch.h"

#include "kernels/cuda/stream/launch.h"

#include <algorithm>

#include <cuda_runtime.h>

#include "kernels/cuda/device/elements.h"

namespace fuseline::cuda {

namespace {

using namespace device;

template <Element kElement>
__global__ void __launch_bounds__(kBlockThreads) addRanks(const RankSum sum) {
  using Bits = typename Codec<kElement>::Bits;
  const Bits* const from = reinterpret_cast<const Bits*>(sum.from);
  Bits* const to = reinterpret_cast<Bits*>(sum.to);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kBlockThreads;
#pragma unroll 1
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x; i < sum.count; i += step) {
    FUSELINE_READS(from + i, sizeof(Bits));
    float total = Codec<kElement>::decode(from[i]);
#pragma unroll 1
    for (int rank = 1; rank < sum.ranks; ++rank) {
      const Bits* const next = from + rank * sum.count + i;
      FUSELINE_READS(next, sizeof(Bits));
      total += Codec<kElement>::decode(*next);
    }
    FUSELINE_WRITES(to + i, sizeof(Bits));
    to[i] = Codec<kElement>::encode(total);
  }
}

auto kernelFor(DType dtype) {
  if (dtype == DType::F32) return addRanks<Element::F32>;
  return dtype == DType::BF16 ? addRanks<Element::BF16> : addRanks<Element::F16>;
}

}  // namespace

void launchRankSum(const RankSum& sum, DType dtype, Stream stream) {
  constexpr std::int64_t kMaxBlocks = 4096;
  if (sum.count == 0) return;
  const std::int64_t blocks = std::min((sum.count + kBlockThreads - 1) / kBlockThreads, kMaxBlocks);
  launch(kernelFor(dtype), dim3(static_cast<unsigned>(blocks)), dim3(kBlockThreads), 0, stream, sum);
}

}  // namespace fuseline::cuda
