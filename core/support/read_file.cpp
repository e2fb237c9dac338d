// Reading block by block, so that sources without a size have a limit, too.
// SPDX-License-Identifier: Apache-2.0
#include "core/support/read_file.h"

#include <cerrno>
#include <fstream>
#include <system_error>
#include <vector>

#include <fmt/format.h>

namespace fuseline {

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;

Error readError(const std::filesystem::path& path, int code) {
  return Error{fmt::format("Cannot read {}: {}.", path.string(), std::generic_category().message(code))};
}

}  // namespace

Result<std::string> readWholeFile(const std::filesystem::path& path, const FileExpectation& expected) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code))
    return Error{fmt::format("Cannot read {}: expected a {}, found a folder.", path.string(), expected.what)};
  std::ifstream file(path, std::ios::binary);
  if (!file) return readError(path, errno);
  // The size is checked while reading: a pipe or a device does not report one.
  std::string text;
  std::vector<char> block(kMiB);
  while (file && text.size() <= expected.maxMiB * kMiB) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad()) return readError(path, errno);
  if (text.size() <= expected.maxMiB * kMiB) return text;
  return Error{fmt::format("{}: the file is larger than {} MiB, the maximum of a {}.", path.string(), expected.maxMiB,
                           expected.what)};
}

}  // namespace fuseline
