// mmap, madvise, and one write a page.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/machine/cpu_memory.h"

#include "core/support/text.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace fuseline::cpu {

namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
/// Blocks of at least this size begin on a huge page and fill whole ones: address translation of small pages costs a
/// GEMM several per cent.
constexpr std::size_t kMinHugeBytes = kHugePageBytes / 8;

std::size_t roundUp(std::size_t value, std::size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

/// Owns one mapping. `data` begins on a huge page where the size is worth one.
class MappedMemory final : public DeviceMemory {
 public:
  MappedMemory(void* mapping, std::size_t mappedBytes, std::byte* data, std::size_t sizeBytes)
      : m_mapping(mapping), m_mappedBytes(mappedBytes), m_data(data), m_sizeBytes(sizeBytes) {}
  ~MappedMemory() override { munmap(m_mapping, m_mappedBytes); }
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;

  std::byte* data() override { return m_data; }
  std::size_t sizeBytes() const override { return m_sizeBytes; }

 private:
  void* m_mapping;
  std::size_t m_mappedBytes;
  std::byte* m_data;
  std::size_t m_sizeBytes;
};

std::byte* alignTo(void* pointer, std::size_t alignment) {
  return reinterpret_cast<std::byte*>(roundUp(reinterpret_cast<std::size_t>(pointer), alignment));
}

void touchPages(std::byte* data, std::size_t sizeBytes) {
  const auto pageBytes = static_cast<std::size_t>(sysconf(_SC_PAGE_SIZE));
  for (std::size_t offset = 0; offset < sizeBytes; offset += pageBytes)
    static_cast<volatile std::byte*>(data)[offset] = std::byte{0};
}

}  // namespace

Result<std::unique_ptr<DeviceMemory>> allocateCpuMemory(std::size_t sizeBytes) {
  const bool isHuge = sizeBytes >= kMinHugeBytes;
  const std::size_t mappedBytes = roundUp(sizeBytes + 1, kHugePageBytes / 512) + (isHuge ? 2 * kHugePageBytes : 0);
  void* mapping = mmap(nullptr, mappedBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED)
    return Error{fmt::format("cpu: {} of memory are not available ({}). Make the pipeline smaller.",
                             formatBytes(static_cast<std::int64_t>(sizeBytes)), std::strerror(errno)),
                 ErrorKind::RunFailed};
  std::byte* data = isHuge ? alignTo(mapping, kHugePageBytes) : static_cast<std::byte*>(mapping);
  // Only a hint: without huge pages everything works, a little slower.
  if (isHuge) madvise(data, roundUp(sizeBytes, kHugePageBytes), MADV_HUGEPAGE);
  touchPages(data, sizeBytes);
  return std::unique_ptr<DeviceMemory>(std::make_unique<MappedMemory>(mapping, mappedBytes, data, sizeBytes));
}

}  // namespace fuseline::cpu
