// The reductions of all communicators: the same bits, whoever carries the bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/collective/communicator.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace fuseline {

/// Elements [first, first + count) of an all-reduced tensor, which rank `owner` adds.
struct ElementRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};
ElementRange sliceOf(std::int64_t count, int owner, int ranks);

/// Adds the tensors of all ranks, in rank order and float32, and rounds once; or takes the largest elements.
/// contributions: one pointer a rank, to `count` elements. out: may be one of them. dtype: one that ops compute with.
void reduceInRankOrder(Reduction reduction, DType dtype, std::span<const std::byte* const> contributions,
                       std::int64_t count, std::byte* out);

}  // namespace fuseline
