// Memory plan: offsets for storages, by lifetime.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>

namespace fuseline {

/// A growing arena with best-fit reuse. Offsets are multiples of 64 bytes; cost is logarithmic in the free blocks.
class Arena {
 public:
  std::int64_t allocate(std::int64_t bytes);
  void release(std::int64_t offset, std::int64_t bytes);
  /// The largest extent that was ever in use.
  std::int64_t sizeBytes() const { return m_end; }

 private:
  void insertFree(std::int64_t offset, std::int64_t bytes);
  void eraseFree(std::map<std::int64_t, std::int64_t>::iterator block);

  std::map<std::int64_t, std::int64_t> m_freeByOffset;           // offset to size
  std::set<std::pair<std::int64_t, std::int64_t>> m_freeBySize;  // size, offset
  std::int64_t m_end = 0;
};

/// Rounds up to the arena's granule of 64 bytes, a cache line.
std::int64_t alignedBytes(std::int64_t bytes);

}  // namespace fuseline
