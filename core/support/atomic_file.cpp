// Writing by way of a temporary file and a rename.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/atomic_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>
#include <system_error>

#include <fmt/format.h>

namespace fuseline {

namespace {

namespace fs = std::filesystem;

Error writeError(const fs::path& path, const std::string& why) {
  return {.message = fmt::format("{}: cannot be written: {}.", path.string(), why), .kind = ErrorKind::RunFailed};
}

/// Beside the target, because a rename works within one file system only; random, because two programs may write.
fs::path temporaryBeside(const fs::path& path) {
  fs::path temporary = path;
  temporary += fmt::format(".{:08x}.tmp", std::random_device{}());
  return temporary;
}

/// Why the write failed; empty when it did not.
std::string writeTo(const fs::path& path, const std::function<void(std::ostream&)>& write) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (file) write(file);
  file.close();
  return file ? std::string() : std::string(std::strerror(errno != 0 ? errno : EIO));
}

Result<void> writeDirectly(const fs::path& path, const std::function<void(std::ostream&)>& write) {
  if (const std::string why = writeTo(path, write); !why.empty()) return writeError(path, why);
  return {};
}

bool isSpecialFile(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) && !fs::is_regular_file(path, ignored);
}

}  // namespace

Result<void> writeFileAtomically(const fs::path& path, const std::function<void(std::ostream&)>& write) {
  if (isSpecialFile(path)) return writeDirectly(path, write);
  const fs::path temporary = temporaryBeside(path);
  std::string why = writeTo(temporary, write);
  if (why.empty()) {
    std::error_code failure;
    fs::rename(temporary, path, failure);
    if (!failure) return {};
    why = failure.message();
  }
  std::error_code ignored;
  fs::remove(temporary, ignored);
  return writeError(path, why);
}

Result<void> checkWritable(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return writeError(path, std::strerror(EISDIR));
  if (isSpecialFile(path)) return {};
  const fs::path temporary = temporaryBeside(path);
  const std::string why = writeTo(temporary, [](std::ostream&) {});
  fs::remove(temporary, ignored);
  return why.empty() ? Result<void>() : writeError(path, why);
}

}  // namespace fuseline
