// ReadFile: what a file holds, read on any thread, before a session shows it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/document/file_format.h"
#include "core/profile/run_record.h"
#include "core/runtime/measured_pipeline.h"

#include <QString>

#include <optional>

namespace fuseline::ui {

struct ReadFile {
  struct Run {
    RunRecord record;
    MeasuredPipeline measured;
  };
  QString path;
  LoadedDocument loaded = {};
  std::optional<Run> run = {};  // of a run file, whose pipeline takes the place of `loaded`
};

/// A pipeline, or what has or describes one: a picture, a script, a model.
/// Errors: those of loadOrImportDocument(), and of a file in which nothing could be read.
Result<ReadFile> readPipelineFile(const QString& path);
/// Errors: those of loadNotedRun() and measuredPipeline().
Result<ReadFile> readRunFile(const QString& path);

}  // namespace fuseline::ui
