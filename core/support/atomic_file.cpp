// Writing by way of a temporary file and a rename.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

namespace fuseline {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRandomDigits = 8;
constexpr std::string_view kTemporaryEnding = ".tmp";

Error writeError(const fs::path& path, const std::string& why) {
  std::error_code ignored;
  const fs::path folder = path.parent_path();
  const std::string next = folder.empty() || fs::exists(folder, ignored)
                               ? std::string()
                               : fmt::format(" Create the folder {} first.", folder.string());
  return {.message = fmt::format("{}: cannot be written: {}.{}", path.string(), why, next),
          .kind = ErrorKind::RunFailed};
}

/// Beside the target, because a rename works within one file system only; random, because two programs may write.
fs::path temporaryBeside(const fs::path& path) {
  fs::path temporary = path;
  temporary += fmt::format(".{:0{}x}{}", std::random_device{}(), kRandomDigits, kTemporaryEnding);
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

/// So that a power cut after the rename leaves the new content, and not an empty file under the old name.
bool isOnDisk(const fs::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool isSynced = fsync(file) == 0 || errno == EINVAL;  // EINVAL: a file system that has nothing to wait for
  close(file);
  return isSynced;
}

/// Why they could not be; empty when they were, or there is no such file yet.
std::string takePermissions(const fs::path& from, const fs::path& to) {
  std::error_code problem;
  const fs::file_status status = fs::status(from, problem);
  if (!fs::exists(status)) return {};
  fs::permissions(to, status.permissions(), problem);
  return problem ? problem.message() : std::string();
}

/// On the disk first: with the permissions of the old file its owner may not be allowed to open it.
std::string replaceWith(const fs::path& temporary, const fs::path& path) {
  if (!isOnDisk(temporary)) return std::strerror(errno);
  if (std::string why = takePermissions(path, temporary); !why.empty()) return why;
  std::error_code failure;
  fs::rename(temporary, path, failure);
  return failure ? failure.message() : std::string();
}

bool isSpecialFile(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) && !fs::is_regular_file(path, ignored);
}

/// Holds a lock on a temporary file while it is written. A program that is killed lets go of it.
class Claim {
 public:
  explicit Claim(const fs::path& temporary, int flags = 0)
      : m_file(open(temporary.c_str(), O_RDONLY | O_CLOEXEC | flags, 0666)),
        m_isHeld(m_file >= 0 && flock(m_file, LOCK_EX | LOCK_NB) == 0) {}
  ~Claim() {
    if (m_file >= 0) close(m_file);
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  bool isHeld() const { return m_isHeld; }

 private:
  int m_file;
  bool m_isHeld;
};

/// NAME.1a2b3c4d.tmp: left by a killed program from an earlier write of this file.
bool isLeftover(const fs::directory_entry& entry, const std::string& target) {
  constexpr auto kClaimedWithin = std::chrono::milliseconds(100);  // until its first byte
  const std::string name = entry.path().filename().string();
  const std::string stem = target + ".";
  const bool isOurs = name.size() == stem.size() + kRandomDigits + kTemporaryEnding.size() && name.starts_with(stem) &&
                      name.ends_with(kTemporaryEnding);
  std::error_code problem;
  if (!isOurs || !entry.is_regular_file(problem)) return false;
  const auto written = entry.last_write_time(problem);
  return !problem && fs::file_time_type::clock::now() - written > kClaimedWithin && Claim(entry.path()).isHeld();
}

void removeLeftovers(const fs::path& target) {
  std::error_code problem;
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  std::vector<fs::path> leftovers;
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end; entry.increment(problem))
    if (isLeftover(*entry, target.filename().string())) leftovers.push_back(entry->path());
  for (const fs::path& leftover : leftovers) fs::remove(leftover, problem);
}

}  // namespace

fs::path writtenFile(fs::path path) {
  constexpr int kMostLinks = 40;
  std::error_code problem;
  for (int followed = 0; followed < kMostLinks && fs::is_symlink(path, problem); ++followed)
    path = path.parent_path() / fs::read_symlink(path, problem);
  return path;
}

Result<void> writeFileAtomically(const fs::path& path, const std::function<void(std::ostream&)>& write) {
  if (isSpecialFile(path)) return writeDirectly(path, write);
  const fs::path target = writtenFile(path);
  const fs::path temporary = temporaryBeside(target);
  const Claim claim(temporary, O_CREAT | O_EXCL);
  std::string why = writeTo(temporary, write);
  if (why.empty()) why = replaceWith(temporary, target);
  removeLeftovers(target);
  if (why.empty()) return {};
  std::error_code ignored;
  fs::remove(temporary, ignored);
  return writeError(path, why);
}

Result<void> checkWritable(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return writeError(path, std::strerror(EISDIR));
  if (isSpecialFile(path)) return {};
  const fs::path temporary = temporaryBeside(writtenFile(path));
  const std::string why = writeTo(temporary, [](std::ostream&) {});
  fs::remove(temporary, ignored);
  return why.empty() ? Result<void>() : writeError(path, why);
}

}  // namespace fuseline
