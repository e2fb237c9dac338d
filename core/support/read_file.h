// Files that are read as a whole.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"

#include <cstddef>
#include <filesystem>
#include <string>

namespace fuseline {

/// Expected kind of a file, for messages, and the maximum size that is read.
struct FileExpectation {
  std::string what;  // "pipeline file"
  std::size_t maxMiB = 64;
};

/// Errors: a sentence with the path: there is no such file, it is a folder, it is larger than expected, it is a pipe
/// without a writer, or a device without an end.
Result<std::string> readWholeFile(const std::filesystem::path& path, const FileExpectation& expected);

/// Errors: a sentence with the path: there is no such file, or it is a folder, a pipe or a device, which has no size.
Result<void> checkRegularFile(const std::filesystem::path& path, const std::string& what);

}  // namespace fuseline
