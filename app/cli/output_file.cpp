// Looks before a file is written.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/output_file.h"

#include <filesystem>

#include <fmt/format.h>

namespace fuseline::cli {

Result<void> checkFree(const std::string& file, bool replaces) {
  if (replaces || !std::filesystem::is_regular_file(file)) return {};
  return Error{fmt::format("{}: expected the name of a new file, found one that exists. --force replaces it.", file),
               ErrorKind::Usage};
}

Result<void> makeFolder(const std::string& option, const std::string& folder) {
  std::error_code problem;
  if (!folder.empty()) std::filesystem::create_directories(folder, problem);
  if (!problem) return {};
  return Error{fmt::format("{} {}: this folder cannot be made: {}.", option, folder, problem.message())};
}

}  // namespace fuseline::cli
