// PipelineExporter: writes a pipeline for other programs. One file each, and one line in pipelineExporters().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/drawing/graph_layout.h"
#include "core/plan/analysis.h"
#include "core/support/result.h"
#include "core/tensor/tensor.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

/// A pipeline without errors, as it was analyzed.
struct ExportedPipeline {
  std::string name;  // "llama_mlp": the file's, without folder and ending
  const PipelineDocument& document;
  const AnalysisOptions& options;
  const Analysis& analysis;
  /// For formats with weights: the seed they are drawn from, and given tensors that replace drawn ones, by name.
  std::uint64_t seed = 0;
  std::shared_ptr<const NamedTensors> tensors = nullptr;
  /// For formats that are programs: the module alone, without the code that times and checks it.
  bool moduleOnly = false;
  /// For --to onnx: opset 23 has ops for attention and rotary embeddings; 0: that of kOnnxOpset, in which they are
  /// decomposed.
  std::int64_t onnxOpset = 0;
  /// For formats that are drawings. Empty: no layout is available.
  LayOutGraph layOut = nullptr;
};

struct PipelineText {
  std::string text;
  /// Where the other program will do something else than Fuseline, in sentences.
  std::vector<std::string> notes = {};
  /// Set if the file is not text: returns its bytes, including weights, and `text` is a listing for people. Errors: a
  /// given tensor does not fit.
  std::function<Result<std::string>()> bytes = nullptr;
};

/// Content of the file. Errors: those of PipelineText::bytes.
Result<std::string> contentOf(const PipelineText& exported);

struct PipelineExporter {
  std::string_view name;     // "te"
  std::string_view title;    // for people: "TransformerEngine module"
  std::string_view ending;   // of its files: ".py"
  std::string_view summary;  // its purpose, in one sentence
  /// Errors: a sentence that names the op that the format cannot express, and the next step.
  Result<PipelineText> (*write)(const ExportedPipeline& pipeline) = nullptr;
};

std::span<const PipelineExporter> pipelineExporters();
/// nullptr when there is none.
const PipelineExporter* findPipelineExporter(std::string_view name);

/// The exported document: with the options' symbols and recipe.
PipelineDocument documentAsAnalysed(const ExportedPipeline& pipeline);

}  // namespace fuseline
