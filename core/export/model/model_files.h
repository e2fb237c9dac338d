// Files of weights as transformers writes them: one, or shards with an index.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"
#include "core/tensor/tensor.h"

#include <cstdint>
#include <filesystem>

namespace fuseline {

/// As transformers (save_pretrained).
inline constexpr std::uint64_t kMostShardBytes = 5'000'000'000;

/// "model.safetensors" of a folder; a path that ends in a slash is one, too. Any other path stays.
std::filesystem::path modelFileOf(const std::filesystem::path& path);

/// Is there an index of shards beside it, which readers might prefer? writeModelFiles() asks, too.
Result<void> checkModelFile(const std::filesystem::path& file);

/// Writes the file, or, if the tensors have more bytes than a shard may have, NAME-00001-of-00003.safetensors ... and
/// NAME.safetensors.index.json beside it. A tensor is never divided. tensors: with the names of the model, as
/// withModelNames() makes them. Errors: the folder has shards already, or a file beside which shards are not read; a
/// file cannot be written.
Result<void> writeModelFiles(const std::filesystem::path& file, NamedTensors tensors,
                             std::uint64_t mostShardBytes = kMostShardBytes);

}  // namespace fuseline
