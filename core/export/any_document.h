// Pipelines from all files that have or describe one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/file_format.h"
#include "core/support/result.h"

#include <filesystem>

namespace fuseline {

/// Imports an ONNX model, or the config.json of a model or of a folder, or loads any other file that loadDocument()
/// reads. Errors: those of importOnnx(), importModel() or loadDocument().
Result<LoadedDocument> loadOrImportDocument(const std::filesystem::path& path);

}  // namespace fuseline
