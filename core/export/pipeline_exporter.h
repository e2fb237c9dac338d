// PipelineExporter: writes a pipeline for other programs. One file each, and one line in pipelineExporters().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/analysis.h"
#include "core/support/result.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// A pipeline without errors, as it was analysed.
struct ExportedPipeline {
  std::string name;  // "llama_mlp": the file's, without folder and ending
  const PipelineDocument& document;
  const AnalysisOptions& options;
  const Analysis& analysis;
};

struct PipelineText {
  std::string text;
  /// Where the other program will do something else than Fuseline, in sentences.
  std::vector<std::string> notes = {};
};

struct PipelineExporter {
  std::string_view name;     // "te"
  std::string_view title;    // for people: "TransformerEngine module"
  std::string_view ending;   // of its files: ".py"
  std::string_view summary;  // what it is for, in one sentence
  /// Errors: a sentence that names the op which the format cannot hold, and what would help.
  Result<PipelineText> (*write)(const ExportedPipeline& pipeline) = nullptr;
};

std::span<const PipelineExporter> pipelineExporters();
/// nullptr when there is none.
const PipelineExporter* findPipelineExporter(std::string_view name);

/// The document with the options' symbols and recipe in it: what was exported.
PipelineDocument documentAsAnalysed(const ExportedPipeline& pipeline);

}  // namespace fuseline
