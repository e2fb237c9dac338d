// Chooses the importer by the file.
// SPDX-License-Identifier: Apache-2.0
#include "core/export/any_document.h"

#include "core/export/model/model_import.h"
#include "core/export/onnx/onnx_import.h"

#include <utility>

namespace fuseline {

Result<LoadedDocument> loadOrImportDocument(const std::filesystem::path& given) {
  const std::filesystem::path path = modelConfigOf(given);
  const bool isOnnx = isOnnxFile(path);
  if (!isOnnx && !isModelConfig(path)) return loadDocument(path);
  Result<ImportedPipeline> imported = isOnnx ? importOnnx(path) : importModel(path);
  if (!imported) return imported.error();
  return LoadedDocument{
      .document = std::move(imported->document), .isTakenOut = true, .notes = std::move(imported->notes)};
}

}  // namespace fuseline
