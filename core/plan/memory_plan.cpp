// Best-fit arena.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory_plan.h"

#include <iterator>

namespace fuseline {

std::int64_t alignedBytes(std::int64_t bytes) {
  constexpr std::int64_t kGranuleBytes = 64;
  return (bytes + kGranuleBytes - 1) / kGranuleBytes * kGranuleBytes;
}

std::int64_t Arena::allocate(std::int64_t bytes) {
  const std::int64_t size = alignedBytes(bytes);
  const auto fit = m_freeBySize.lower_bound({size, 0});
  if (fit == m_freeBySize.end()) {
    const std::int64_t offset = m_end;
    m_end += size;
    return offset;
  }
  const auto [blockSize, offset] = *fit;
  eraseFree(m_freeByOffset.find(offset));
  if (blockSize > size) insertFree(offset + size, blockSize - size);
  return offset;
}

void Arena::release(std::int64_t offset, std::int64_t bytes) {
  std::int64_t size = alignedBytes(bytes);
  if (size == 0) return;
  const auto next = m_freeByOffset.find(offset + size);
  if (next != m_freeByOffset.end()) {
    size += next->second;
    eraseFree(next);
  }
  const auto after = m_freeByOffset.lower_bound(offset);
  if (after != m_freeByOffset.begin()) {
    const auto previous = std::prev(after);
    if (previous->first + previous->second == offset) {
      offset = previous->first;
      size += previous->second;
      eraseFree(previous);
    }
  }
  insertFree(offset, size);
}

void Arena::insertFree(std::int64_t offset, std::int64_t bytes) {
  m_freeByOffset.emplace(offset, bytes);
  m_freeBySize.insert({bytes, offset});
}

void Arena::eraseFree(std::map<std::int64_t, std::int64_t>::iterator block) {
  m_freeBySize.erase({block->second, block->first});
  m_freeByOffset.erase(block);
}

}  // namespace fuseline
