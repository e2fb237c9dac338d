// Reads files without a session.
// SPDX-License-Identifier: Apache-2.0
#include "ui/session/read_file.h"

#include "core/export/any_document.h"
#include "core/profile/run_folder.h"

#include <utility>

namespace fuseline::ui {

Result<ReadFile> readPipelineFile(const QString& path) {
  Result<LoadedDocument> loaded = loadOrImportDocument(path.toStdString());
  if (!loaded) return loaded.error();
  if (loaded->isUnreadable) return Error{errorText(loaded->diagnostics, path.toStdString())};
  return ReadFile{.path = path, .loaded = std::move(*loaded)};
}

Result<ReadFile> readRunFile(const QString& path) {
  Result<RunRecord> record = loadNotedRun(path.toStdString());
  if (!record) return record.error();
  Result<MeasuredPipeline> measured = measuredPipeline(*record);
  if (!measured) return Error{path.toStdString() + ": " + measured.error().message};
  return ReadFile{.path = path, .run = ReadFile::Run{std::move(*record), std::move(*measured)}};
}

}  // namespace fuseline::ui
