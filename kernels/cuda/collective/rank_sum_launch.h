// Sums of the tensors of several ranks. Plain C++: the kernel is in rank_sum_kernels.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/dtype.h"
#include "kernels/cuda/stream/stream.h"

#include <cstddef>
#include <cstdint>

namespace fuseline::cuda {

/// to[i] is the sum of from[rank * count + i] over the ranks, added in rank order in float32 and rounded once.
struct RankSum {
  const std::byte* from = nullptr;  // [ranks, count]
  std::byte* to = nullptr;          // [count]
  int ranks = 1;
  std::int64_t count = 0;
};

/// dtype: one that ops compute with.
void launchRankSum(const RankSum& sum, DType dtype, Stream stream);

}  // namespace fuseline::cuda
