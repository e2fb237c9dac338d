// fuseline import: takes the pipeline out of a file that was made of one, or of another model.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/output_file.h"
#include "app/cli/verbs.h"
#include "core/document/file_format.h"
#include "core/export/onnx/onnx_import.h"
#include "core/profile/run_file.h"
#include "core/runtime/measured_pipeline.h"
#include "core/runtime/pipeline_run.h"

#include <fmt/format.h>

namespace fuseline::cli {

namespace {

struct ImportOptions {
  std::string file;
  std::string output;
  bool replaces = false;
  bool isStrict = false;
  bool asJson = false;
};

/// As it was measured.
Result<ImportedPipeline> pipelineOfRun(const std::string& path) {
  const Result<RunRecord> record = loadRunRecord(path);
  if (!record) return record.error();
  Result<MeasuredPipeline> pipeline = measuredPipeline(*record);
  if (!pipeline) return Error{fmt::format("{}: {}", path, pipeline.error().message)};
  return ImportedPipeline{.document = std::move(pipeline->document)};
}

Result<ImportedPipeline> pipelineIn(const ImportOptions& options) {
  const std::string& path = options.file;
  if (isOnnxFile(path)) return importOnnx(path, {.isStrict = options.isStrict});
  if (holdsRun(path)) return pipelineOfRun(path);
  Result<LoadedDocument> loaded = loadDocument(path);
  if (!loaded) return loaded.error();
  if (hasErrors(loaded->diagnostics))
    return Error{fmt::format("{} has no pipeline that can be used:\n{}", path, errorText(loaded->diagnostics, path))};
  return ImportedPipeline{.document = std::move(loaded->document)};
}

Result<int> importPipeline(const ImportOptions& options, Context& context) {
  if (Result<void> free = checkFree(options.output, options.replaces); !free) return free.error();
  const Result<ImportedPipeline> imported = pipelineIn(options);
  if (!imported) return imported.error();
  for (const std::string& note : imported->notes) context.err << fmt::format("note: {}\n", note);
  if (!options.output.empty())
    if (Result<void> saved = saveDocument(imported->document, options.output); !saved) return saved.error();
  const std::string text = serialize(imported->document);
  if (options.asJson)
    printJson(context, {{"file", options.output}, {"notes", imported->notes}, {"text", text}});
  else if (options.output.empty())
    context.out << text;
  else
    context.err << fmt::format("Wrote {}. Next: fuseline fuse {}\n", options.output, options.output);
  return 0;
}

}  // namespace

void addImportVerb(CLI::App& app, Context& context) {
  const auto options = std::make_shared<ImportOptions>();
  CLI::App* verb = addVerb(
      app, context, "import",
      "Takes the pipeline out of a file that was made of it: a module of TransformerEngine, a picture, a run; or "
      "out of the graph of an ONNX model",
      options, importPipeline);
  verb->add_option(
          "FILE", options->file,
          "What was exported (*.py, *.svg, *.png, *.html, *.onnx), a run (*.fuserun), or another model (*.onnx)")
      ->required();
  verb->add_option("-o,--output", options->output, "The file to write; without it standard output")->type_name("FILE");
  verb->add_flag("--strict", options->isStrict,
                 "Refuses an ONNX model with nodes that are no ops; without it they are left out, with a note");
  verb->add_flag("--force", options->replaces, "Replaces the file where it exists");
  verb->add_flag("--json", options->asJson, "Machine-readable output");
}

}  // namespace fuseline::cli
