// Looks before a file is written.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/output_file.h"

#include <filesystem>
#include <map>
#include <system_error>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {

namespace fs = std::filesystem;

/// One file may have several names.
fs::path placeOf(const std::string& file) {
  std::error_code problem;
  const fs::path place = fs::weakly_canonical(file, problem);
  return problem ? fs::path(file) : place;
}

}  // namespace

/// Where nobody can look, writing will say so.
Result<void> checkFree(const std::string& file, bool replaces) {
  std::error_code ignored;
  if (replaces || !fs::is_regular_file(file, ignored)) return {};
  return Error{fmt::format("{}: expected the name of a new file, found one that exists. --force replaces it.", file),
               ErrorKind::Usage};
}

Result<void> checkDifferent(const std::vector<NamedFile>& files) {
  std::map<fs::path, const NamedFile*> seen;
  for (const NamedFile& file : files) {
    if (file.second.empty()) continue;
    const auto [found, isNew] = seen.emplace(placeOf(file.second), &file);
    if (!isNew)
      return Error{fmt::format("{} and {}: expected two files, found {} twice. Give one of them another name.",
                               found->second->first, file.first, file.second),
                   ErrorKind::Usage};
  }
  return {};
}

Result<void> makeFolder(const std::string& option, const std::string& folder) {
  std::error_code problem;
  if (!folder.empty()) std::filesystem::create_directories(folder, problem);
  if (!problem) return {};
  return Error{fmt::format("{} {}: this folder cannot be made: {}.", option, folder, problem.message())};
}

}  // namespace fuseline::cli
