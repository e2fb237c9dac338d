// RowSink: consumes finished rows of a kernel's result while they are in the cache.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace fuseline::cpu {

/// Threads of the kernel take whole blocks of rows; only the last block of all may be shorter.
struct RowSink {
  std::int64_t blockRows = 1;
  std::int64_t rowBytes = 0;
  /// The whole result; null: it is not stored, and each thread has one block of scratch memory.
  std::byte* memory = nullptr;
  std::byte* scratch = nullptr;
  /// Called on the thread that computed the rows.
  std::function<void(int thread, std::int64_t first, std::int64_t count, const std::byte* rows)> take;

  std::int64_t blockBytes() const { return blockRows * rowBytes; }
  /// Address that row 0 of the result would have for a thread at the block that begins with row `first`.
  std::byte* rowZero(int thread, std::int64_t first) const {
    return memory ? memory : scratchOf(thread) - first * rowBytes;
  }
  std::byte* scratchOf(int thread) const { return scratch + thread * blockBytes(); }
  void finish(int thread, std::int64_t first, std::int64_t count) const {
    take(thread, first, count, memory ? memory + first * rowBytes : scratchOf(thread));
  }
};

}  // namespace fuseline::cpu
