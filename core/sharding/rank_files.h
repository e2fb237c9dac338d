// Files of shards: one safetensors file a rank in one folder, whose metadata says which part of each tensor it has.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/sharding/shard.h"
#include "core/support/result.h"
#include "core/tensor/tensor.h"

#include <filesystem>
#include <map>
#include <string>

namespace fuseline {

/// "rank-0-of-2.safetensors"
std::string rankFileName(int rank, int ranks);

/// Does the folder have a file of shards?
bool hasRankFiles(const std::filesystem::path& folder);
/// Errors: the folder has shards of another number of ranks.
Result<void> checkRankFolder(const std::filesystem::path& folder, int ranks);

/// Writes the tensors that one rank holds, and makes the folder. shards: by tensor; each rank has the others for
/// itself. Errors: those of checkRankFolder() and writeSafetensors().
Result<void> writeRankFile(const std::filesystem::path& folder, int rank, int ranks, const NamedTensors& tensors,
                           const std::map<std::string, Shard, std::less<>>& shards);

/// The whole tensors, in the order of rank 0. Tensors that all ranks hold must have equal bits, except for those that
/// each rank has for itself, of which the result has those of rank 0.
/// Errors: a file is missing, or is of another group; files that do not fit together, with the tensor's name.
Result<NamedTensors> readRankFiles(const std::filesystem::path& folder);

/// Errors: the file is the shard of one rank, which does not hold whole tensors.
Result<void> checkNoRankFile(const std::filesystem::path& file);

}  // namespace fuseline
