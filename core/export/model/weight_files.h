// WeightFiles: the tensors of one or several safetensors files by name; data is read tensor by tensor. Files are not
// mapped: one that shrinks, or is on a disk that fails, would end the process in place of an error.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"
#include "core/tensor/safetensors.h"

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// The safetensors files of a folder, by name; those of its index, if it has one. Errors: it cannot be read, has none,
/// or misses one of the index.
Result<std::vector<std::filesystem::path>> safetensorsIn(const std::filesystem::path& folder);

class WeightFiles {
 public:
  /// As readModelWeights(). Shards are opened when one of their tensors is asked for.
  static Result<WeightFiles> open(const std::filesystem::path& path);

  /// Errors: a file of the index cannot be read.
  Result<bool> contains(std::string_view name);
  /// All that may be read.
  std::vector<std::filesystem::path> files() const;
  /// Errors: there is no such tensor, under this name or one that other versions give it; its file cannot be read.
  Result<Tensor> read(std::string_view name);

 private:
  struct Place {
    std::filesystem::path file;
    StoredTensor tensor;
  };

  Result<void> addFile(const std::filesystem::path& file);
  Result<void> addIndex(const std::filesystem::path& index);
  /// Empty: there is none.
  Result<std::string> storedName(std::string_view name);
  Result<bool> has(const std::string& name);

  std::filesystem::path m_path;
  std::map<std::string, std::filesystem::path, std::less<>> m_shards;  // of tensors in an index
  std::set<std::filesystem::path> m_opened;
  std::map<std::string, Place, std::less<>> m_places;
};

}  // namespace fuseline
