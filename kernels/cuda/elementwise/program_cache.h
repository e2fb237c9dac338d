// Compiled generated code, kept in files for the next run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline::cuda {

/// The text of a file, and the binary in a text: nothing if it is damaged, or of another origin or source.
std::string formatProgram(std::string_view origin, std::string_view source, const std::vector<char>& binary);
std::optional<std::vector<char>> parseProgram(std::string_view origin, std::string_view source, std::string_view text);

/// One file a program. Several processes may share the folder. Nothing here fails, as in kept_file.h.
class ProgramCache {
 public:
  /// Files that are kept; more than the programs of a day's work, or of all tests.
  static constexpr std::size_t kMostFiles = 4096;

  /// An empty folder: nothing is kept. origin: all but the source that the binary depends on.
  ProgramCache(std::filesystem::path folder, std::string origin, std::size_t mostFiles = kMostFiles);

  std::optional<std::vector<char>> find(std::string_view source) const;
  /// Are there any programs of this origin?
  bool hasAny() const;
  /// Deletes the least recently used file when there are too many.
  void keep(std::string_view source, const std::vector<char>& binary) const;

 private:
  std::string prefix() const;
  std::filesystem::path fileOf(std::string_view source) const;
  void dropOldest() const;

  std::filesystem::path m_folder;
  std::string m_origin;
  std::size_t m_mostFiles;
};

}  // namespace fuseline::cuda
