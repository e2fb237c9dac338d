// Distribution of norms' rows over threads and blocks. The numbers follow from registers and bytes in flight on an
// H100, where forward and backward norms of 4096 to 8192 columns were measured with them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/device/norm_data.h"
#include "kernels/cuda/elementwise/elementwise_launch.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace fuseline::cuda {

/// Rows that are no whole packets have a warp up to here, and a block beyond.
constexpr std::int64_t kMaxWarpCols = 1024;
/// A multiprocessor has 228 KB, part of which is cache, and blocks of the smallest GPUs have 99 KB.
constexpr std::size_t kMaxSharedSumBytes = 96 * 1024;

template <int kMaxThreads, class Share, class... Longer, class Launch>
void withHeldRow(std::int64_t cols, const Launch& launch) {
  if constexpr (Share::kThreads <= kMaxThreads)
    if (cols <= Share::kMaxHeldCols) return launch(Share());
  if constexpr (sizeof...(Longer) > 0)
    withHeldRow<kMaxThreads, Longer...>(cols, launch);
  else
    launch(device::RowShare<512, 0>());
}

/// launch(share) for rows of `cols` columns in whole packets, in blocks of at most kMaxThreads threads.
template <int kMaxThreads, class Launch>
void withPacketShare(std::int64_t cols, const Launch& launch) {
  using device::RowShare;
  withHeldRow<kMaxThreads, RowShare<32, 2>, RowShare<128, 2>, RowShare<256, 2>, RowShare<512, 2>, RowShare<1024, 2>>(
      cols, launch);
}

/// The same for rows of any number of columns.
template <int kMaxThreads, class Launch>
void withRowShare(std::int64_t cols, const Launch& launch) {
  using device::RowShare;
  if (cols % kVectorWidth == 0) return withPacketShare<kMaxThreads>(cols, launch);
  if (cols <= kMaxWarpCols) return launch(RowShare<32, 0, true>());
  launch(RowShare<256, 0, true>());
}

template <class Share>
constexpr unsigned kRowsPerBlock = Share::kThreads / Share::kRowThreads;

template <class Share>
unsigned rowBlocks(std::int64_t rows) {
  return static_cast<unsigned>((rows + kRowsPerBlock<Share> - 1) / kRowsPerBlock<Share>);
}

/// Blocks of forward that a multiprocessor has at a time, and registers for.
template <class Share>
constexpr int kForwardBlocksAtOnce = (Share::kIsShifted ? 768 : 1024) / Share::kThreads;

/// Number of blocks of backward that a multiprocessor runs at a time, limited by registers: up to 32 KB of x and dy are
/// in flight.
template <class Share>
constexpr int kGradientBlocksAtOnce = 512 / Share::kThreads;

/// Each computes a part of the parameter gradients: no more than keep every multiprocessor busy.
template <class Share>
unsigned gradientBlocks(std::int64_t rows, int numMultiprocessors) {
  return std::min(rowBlocks<Share>(rows), static_cast<unsigned>(kGradientBlocksAtOnce<Share> * numMultiprocessors));
}

/// Shared memory for the sums of a block.
template <class Share>
constexpr std::size_t sharedSumBytes(std::int64_t cols, int numSums) {
  const std::int64_t packets = (cols + Share::kVector - 1) / Share::kVector;
  return kRowsPerBlock<Share> * static_cast<std::size_t>(numSums * packets * Share::kVector) * sizeof(float);
}

}  // namespace fuseline::cuda
