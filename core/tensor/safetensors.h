// Tensors in files: the safetensors format.
// A file is the header's length (u64, little-endian), the header (JSON: name -> dtype, shape, data_offsets) and the
// data. Source: https://huggingface.co/docs/safetensors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"
#include "core/tensor/tensor.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace fuseline {

/// Texts by name in the header's "__metadata__".
using TensorFileMetadata = std::map<std::string, std::string, std::less<>>;

/// Writes atomically. The header keeps the order of `tensors`; the data of wide elements comes first, so that all of it
/// is aligned. Errors: a name is used twice, is not UTF-8 or is "__metadata__"; the file cannot be written.
Result<void> writeSafetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                              const TensorFileMetadata& metadata = {});

/// Reads F32, F16, BF16, F8_E4M3, I64 and U8 tensors, in the order of the header.
/// Errors: any fault of the file, in a sentence with the path and the tensor. Any bytes are safe.
Result<NamedTensors> readSafetensors(const std::filesystem::path& path);

/// A tensor in a file: its data are the bytes [begin, end).
struct StoredTensor {
  std::string name;
  TensorSpec spec;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string foreignDtype = {};  // "BOOL": one that no Tensor has; spec is that of the bytes
};

/// Tensors of the file and their offsets, for callers that map it. Errors: those of readSafetensors(), apart from
/// tensors of a foreign dtype.
Result<std::vector<StoredTensor>> safetensorsIndex(const std::filesystem::path& path);

/// Metadata of the file, without values that are no texts. Errors: the header cannot be read.
Result<TensorFileMetadata> safetensorsMetadata(const std::filesystem::path& path);

}  // namespace fuseline
