// Bytes as a file, for readers that open one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace fuseline::fuzz {

/// A file without a place on a disk.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : m_file(memfd_create("fuzz", MFD_CLOEXEC)) {
    for (std::size_t written = 0; written < bytes.size();) {
      const ssize_t more = write(m_file, bytes.data() + written, bytes.size() - written);
      if (more <= 0) break;
      written += static_cast<std::size_t>(more);
    }
  }
  ~MemoryFile() { close(m_file); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(m_file); }

 private:
  int m_file;
};

}  // namespace fuseline::fuzz
