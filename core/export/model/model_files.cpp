// Fills one shard after another, in the order of the tensors.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/model/model_files.h"

#include "core/support/atomic_file.h"
#include "core/support/json.h"
#include "core/tensor/safetensors.h"

#include <ostream>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace fuseline {

namespace {

namespace fs = std::filesystem;

/// transformers refuses files that do not name the framework.
const TensorFileMetadata kMetadata = {{"format", "pt"}};

fs::path indexOf(const fs::path& file) { return fs::path(file) += ".index.json"; }

fs::path shardOf(const fs::path& file, std::size_t shard, std::size_t count) {
  return file.parent_path() /
         fmt::format("{}-{:05}-of-{:05}{}", file.stem().string(), shard + 1, count, file.extension().string());
}

std::vector<NamedTensors> shardsOf(NamedTensors tensors, std::uint64_t mostShardBytes) {
  std::vector<NamedTensors> shards(1);
  std::uint64_t bytes = 0;
  for (auto& [name, tensor] : tensors) {
    if (!shards.back().empty() && bytes + tensor.data.size() > mostShardBytes) {
      shards.emplace_back();
      bytes = 0;
    }
    bytes += tensor.data.size();
    shards.back().emplace_back(std::move(name), std::move(tensor));
  }
  return shards;
}

/// Readers differ in which of the two forms they prefer, and shards are never overwritten.
Result<void> refuseOther(const fs::path& other) {
  std::error_code ignored;
  if (!fs::exists(other, ignored)) return {};
  return Error{fmt::format("{}: this file belongs to other weights, and readers might take it. Choose an empty folder.",
                           other.string())};
}

Result<void> writeShards(const fs::path& file, const std::vector<NamedTensors>& shards) {
  std::uint64_t total = 0;
  Json places = Json::object();
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const fs::path shard = shardOf(file, i, shards.size());
    if (Result<void> written = writeSafetensors(shard, shards[i], kMetadata); !written) return written;
    for (const auto& [name, tensor] : shards[i]) {
      places[name] = shard.filename().string();
      total += tensor.data.size();
    }
  }
  const Json index = {{"metadata", {{"total_size", total}}}, {"weight_map", std::move(places)}};
  return writeFileAtomically(indexOf(file), [&](std::ostream& out) { out << index.dump(2) << '\n'; });
}

}  // namespace

fs::path modelFileOf(const fs::path& path) {
  std::error_code ignored;
  return path.filename().empty() || fs::is_directory(path, ignored) ? path / "model.safetensors" : path;
}

Result<void> checkModelFile(const fs::path& file) { return refuseOther(indexOf(file)); }

Result<void> writeModelFiles(const fs::path& file, NamedTensors tensors, std::uint64_t mostShardBytes) {
  const std::vector<NamedTensors> shards = shardsOf(std::move(tensors), mostShardBytes);
  const bool isOne = shards.size() == 1;
  if (Result<void> alone = checkModelFile(file); !alone) return alone;
  if (isOne) return writeSafetensors(file, shards.front(), kMetadata);
  if (Result<void> alone = refuseOther(file); !alone) return alone;
  return writeShards(file, shards);
}

}  // namespace fuseline
