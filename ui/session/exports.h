// Writes what a session holds into files of other programs, and into run files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/exporter.h"
#include "core/export/pipeline_exporter.h"

#include <QString>

#include <functional>

namespace fuseline::ui {

class Session;

/// A file or a text to be made, with all that it needs: on any thread, whatever becomes of the session.
using FileWork = std::function<Result<void>()>;
using TextWork = std::function<Result<PipelineText>()>;

/// Names of parameters in a file. Model: those of the files that the model came from, in shards where it is large.
enum class ParameterNames { Pipeline, Model };
/// Writes the parameters that a run would start with.
/// Errors: the pipeline has errors, the tensors file does not fit it, the file cannot be written.
FileWork parametersWork(const Session& session, const QString& path, ParameterNames names = ParameterNames::Pipeline);
/// Writes the last run as a run file, for `fuseline run --measured` and for this window elsewhere.
/// Errors: nothing was measured yet, the file cannot be written.
FileWork runWork(const Session& session, const QString& path);
Result<void> writeRun(const Session& session, const QString& path);
/// Writes the last run in a format of other programs, beside the baselines where the format can. Errors: as
/// writeRun(), and those of the format.
FileWork exportedRunWork(const Session& session, const Exporter& exporter, const QString& path);
/// The pipeline in a format of other programs, as it is planned, with the weights that a run would take. Errors:
/// those of the pipeline, of the tensors file, and of the format.
TextWork exportedPipelineWork(const Session& session, const PipelineExporter& exporter);

}  // namespace fuseline::ui
