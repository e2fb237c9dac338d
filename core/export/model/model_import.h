// Pipelines of whole models, from the config.json that Hugging Face's transformers writes beside their weights.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_import.h"
#include "core/support/result.h"
#include "core/tensor/dtype.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace fuseline {

struct ModelImportOptions {
  /// The first layers only.
  std::optional<std::int64_t> layers = std::nullopt;
  /// Type of tensors and parameters. Not set: that of the config, else bf16.
  std::optional<DType> dtype = std::nullopt;
  /// Reads weights from this safetensors file, or from the ones in this folder. Not set: none are read.
  std::optional<std::filesystem::path> weights = std::nullopt;
};

/// The config.json of a folder that has one; else the path itself.
std::filesystem::path modelConfigOf(const std::filesystem::path& path);
/// A JSON object with model_type, or with architectures, but no pipeline. Any other file: false.
bool isModelConfig(const std::filesystem::path& path);

/// The model from token numbers to loss. Errors: the file is no config, its architecture is not known (with those that
/// are), a value does not fit, the weights cannot be read.
Result<ImportedPipeline> importModel(const std::filesystem::path& path, const ModelImportOptions& options = {});
/// text: of a config. Any text is safe. name: for messages.
Result<ImportedPipeline> importModelConfig(std::string_view text, std::string_view name,
                                           const ModelImportOptions& options = {});

}  // namespace fuseline
