// Sequences that stand one after another: which one a token belongs to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace fuseline::cuda::device {

/// sums: count + 1 prefix sums of lengths that do not decrease. -1: the token is in none of them.
inline __device__ std::int64_t sequenceOf(const std::int64_t* sums, std::int64_t count, std::int64_t token) {
  if (count == 0 || token >= sums[count]) return -1;
  std::int64_t first = 0;
  std::int64_t last = count;
  while (last - first > 1) {
    const std::int64_t middle = (first + last) / 2;
    if (sums[middle] <= token)
      first = middle;
    else
      last = middle;
  }
  return first;
}

}  // namespace fuseline::cuda::device
