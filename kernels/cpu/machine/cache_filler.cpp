// Writes one byte of every cache line, in all threads at once.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/machine/cache_filler.h"

#include "kernels/cpu/machine/cpu_info.h"
#include "kernels/cpu/machine/cpu_memory.h"

#include <algorithm>
#include <utility>

#include <omp.h>

namespace fuseline::cpu {

namespace {

constexpr std::int64_t kLineBytes = 64;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;

class CpuCacheFiller final : public CacheFiller {
 public:
  CpuCacheFiller(std::unique_ptr<DeviceMemory> memory, int threads) : m_memory(std::move(memory)), m_threads(threads) {}

  Result<void> fill() override {
    const auto numLines = static_cast<std::int64_t>(m_memory->sizeBytes()) / kLineBytes;
    const auto value = static_cast<std::byte>(++m_turn);
    std::byte* const data = m_memory->data();
#pragma omp parallel for num_threads(m_threads) schedule(static)
    for (std::int64_t line = 0; line < numLines; ++line) data[line * kLineBytes] = value;
    return {};
  }

 private:
  std::unique_ptr<DeviceMemory> m_memory;
  int m_threads;
  unsigned m_turn = 0;
};

}  // namespace

Result<std::unique_ptr<CacheFiller>> makeCacheFiller(int threads) {
  const std::int64_t bytes = std::min(2 * lastLevelCacheBytes() * threads, kMostBytes);
  Result<std::unique_ptr<DeviceMemory>> memory = allocateCpuMemory(static_cast<std::size_t>(bytes));
  if (!memory) return memory.error();
  return std::unique_ptr<CacheFiller>(std::make_unique<CpuCacheFiller>(std::move(*memory), threads));
}

}  // namespace fuseline::cpu
