// Reading block by block, so that sources without a size have a limit, too.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/read_file.h"

#include <cerrno>
#include <string_view>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

namespace fuseline {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;
constexpr int kPatienceMs = 1000;

Error readError(const fs::path& path, int code) {
  return Error{fmt::format("Cannot read {}: {}.", path.string(), std::generic_category().message(code))};
}

std::string withArticle(const std::string& noun) {
  const bool isVowel = std::string_view("aeioAEIO").find(noun.front()) != std::string_view::npos;
  return (isVowel ? "an " : "a ") + noun;
}

/// kind: as found, such as "a folder".
Error otherKind(const fs::path& path, const std::string& what, std::string_view kind) {
  return Error{fmt::format("Cannot read {}: expected {}, found {}.", path.string(), withArticle(what), kind)};
}

class OpenFile {
 public:
  /// Does not wait for a program that writes to a pipe.
  explicit OpenFile(const fs::path& path) : m_file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~OpenFile() {
    if (m_file >= 0) ::close(m_file);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  bool isOpen() const { return m_file >= 0; }
  /// Did it have bytes, or a pipe a writer?
  bool isWritten() const { return m_isWritten; }

  /// Number of bytes, 0 at the end; -1: errno says why. A pipe without a writer gets a moment to find one.
  ssize_t read(std::vector<char>& block) {
    while (true) {
      const ssize_t numRead = ::read(m_file, block.data(), block.size());
      const bool isWaiting = numRead < 0 && errno == EAGAIN;
      m_isWritten = m_isWritten || numRead > 0 || isWaiting;
      if (isWaiting) {
        wait(-1);
      } else if (numRead == 0 && !m_isWritten && !m_hasWaited) {
        m_hasWaited = true;
        m_isWritten = wait(kPatienceMs);
      } else if (numRead >= 0 || errno != EINTR) {
        return numRead;
      }
    }
  }

 private:
  bool wait(int milliseconds) const {
    pollfd entry{.fd = m_file, .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, milliseconds) > 0;
  }

  int m_file;
  bool m_isWritten = false;
  bool m_hasWaited = false;
};

}  // namespace

Result<std::string> readWholeFile(const fs::path& path, const FileExpectation& expected) {
  std::error_code code;
  const fs::file_type type = fs::status(path, code).type();
  if (type == fs::file_type::directory) return otherKind(path, expected.what, "a folder");
  OpenFile file(path);
  if (!file.isOpen()) return readError(path, errno);
  const bool isDevice = type == fs::file_type::character || type == fs::file_type::block;
  // The size is checked while reading: a pipe or a device does not report one.
  std::string text;
  std::vector<char> block(kMiB);
  while (text.size() <= expected.maxMiB * kMiB) {
    const ssize_t numRead = file.read(block);
    if (numRead < 0) return readError(path, errno);
    if (numRead == 0 && type == fs::file_type::fifo && !file.isWritten())
      return otherKind(path, expected.what, "a pipe to which no program writes");
    if (numRead == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(numRead));
    if (isDevice && text.size() >= kMiB) return otherKind(path, expected.what, "a device");
  }
  return Error{fmt::format("{}: the file is larger than {} MiB, the maximum of {}.", path.string(), expected.maxMiB,
                           withArticle(expected.what))};
}

Result<void> checkRegularFile(const fs::path& path, const std::string& what) {
  std::error_code code;
  const fs::file_type type = fs::status(path, code).type();
  switch (type) {
    case fs::file_type::regular: return {};
    case fs::file_type::directory: return otherKind(path, what, "a folder");
    case fs::file_type::fifo: return otherKind(path, what, "a pipe");
    case fs::file_type::none:
    case fs::file_type::not_found: return readError(path, code ? code.value() : ENOENT);
    default: return otherKind(path, what, "a device");
  }
}

}  // namespace fuseline
