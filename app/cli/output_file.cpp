// Looks before a file is written.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/output_file.h"

#include "core/export/model/weight_files.h"
#include "core/export/onnx/onnx_data_files.h"
#include "core/export/onnx/onnx_import.h"
#include "core/support/atomic_file.h"

#include <filesystem>
#include <map>
#include <system_error>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {

namespace fs = std::filesystem;

/// One file may have several names, and need not be there yet.
fs::path placeOf(const std::string& file) {
  std::error_code problem;
  const fs::path place = fs::weakly_canonical(fs::absolute(writtenFile(file), problem), problem);
  if (problem) return file;
  return place.has_filename() ? place : place.parent_path();
}

using SeenFiles = std::map<fs::path, std::string>;

/// A folder of weights, or that of an index of weights.
fs::path weightsFolder(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return path;
  return path.filename().string().ends_with(".safetensors.index.json") ? path.parent_path() : fs::path();
}

/// A model's tensors may be in files beside it.
void addRead(const NamedFile& file, SeenFiles& seen) {
  if (file.second.empty()) return;
  seen.emplace(placeOf(file.second), file.first);
  if (const fs::path folder = weightsFolder(placeOf(file.second)); !folder.empty())
    if (const Result<std::vector<fs::path>> weights = safetensorsIn(folder))
      for (const fs::path& each : *weights) seen.emplace(placeOf(each.string()), file.first);
  if (!isOnnxFile(file.second)) return;
  for (const fs::path& data : onnxDataFiles(file.second))
    seen.emplace(placeOf(data.string()), fmt::format("{}'s data", file.first));
}

Error sameFile(const std::string& one, const NamedFile& other) {
  return {fmt::format("{} and {}: expected two files, found {} twice. Give one of them another name.", one, other.first,
                      other.second),
          ErrorKind::Usage};
}

}  // namespace

/// Where nobody can look, writing will say so.
Result<void> checkFree(const std::string& file, bool replaces) {
  std::error_code ignored;
  if (replaces || !fs::is_regular_file(file, ignored)) return {};
  return Error{fmt::format("{}: the file exists; expected a new name. --force overwrites it.", file), ErrorKind::Usage};
}

Result<void> checkDifferent(const VerbFiles& files) {
  SeenFiles seen;
  for (const NamedFile& file : files.read) addRead(file, seen);
  for (const NamedFile& file : files.written) {
    if (file.second.empty()) continue;
    const auto [found, isNew] = seen.emplace(placeOf(file.second), file.first);
    if (!isNew) return sameFile(found->second, file);
  }
  return {};
}

Result<void> checkOutputs(const VerbFiles& files, bool replaces) {
  if (Result<void> different = checkDifferent(files); !different) return different;
  for (const NamedFile& file : files.written)
    if (Result<void> free = checkFree(file.second, replaces); !free) return free;
  return {};
}

Result<void> makeFolder(const std::string& option, const std::string& folder) {
  std::error_code problem;
  if (!folder.empty()) std::filesystem::create_directories(folder, problem);
  if (!problem) return {};
  return Error{fmt::format("{} {}: the folder cannot be created: {}.", option, folder, problem.message())};
}

}  // namespace fuseline::cli
