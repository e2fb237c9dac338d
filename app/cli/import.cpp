// fuseline import: takes the pipeline out of a file that was made of one.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/output_file.h"
#include "app/cli/verbs.h"
#include "core/document/file_format.h"
#include "core/export/embedded_pipeline.h"
#include "core/runtime/pipeline_run.h"
#include "core/support/read_file.h"

#include <fmt/format.h>

namespace fuseline::cli {

namespace {

struct ImportOptions {
  std::string file;
  std::string output;
  bool replaces = false;
  bool asJson = false;
};

Result<PipelineDocument> documentIn(const std::string& path) {
  const Result<std::string> file = readWholeFile(path, {.what = "file with a pipeline"});
  if (!file) return file.error();
  const Result<std::string> text = embeddedText(*file);
  if (!text) return Error{fmt::format("{}: {}", path, text.error().message)};
  LoadedDocument loaded = parseDocument(*text);
  if (hasErrors(loaded.diagnostics))
    return Error{fmt::format("{}: the pipeline in it cannot be used:\n{}", path, errorText(loaded.diagnostics, path))};
  return std::move(loaded.document);
}

Result<int> importPipeline(const ImportOptions& options, Context& context) {
  if (Result<void> free = checkFree(options.output, options.replaces); !free) return free.error();
  const Result<PipelineDocument> document = documentIn(options.file);
  if (!document) return document.error();
  if (!options.output.empty())
    if (Result<void> saved = saveDocument(*document, options.output); !saved) return saved.error();
  if (options.asJson)
    printJson(context, {{"file", options.output}, {"text", serialize(*document)}});
  else if (options.output.empty())
    context.out << serialize(*document);
  else
    context.err << fmt::format("Wrote {}. Next: fuseline fuse {}\n", options.output, options.output);
  return 0;
}

}  // namespace

void addImportVerb(CLI::App& app, Context& context) {
  const auto options = std::make_shared<ImportOptions>();
  CLI::App* verb =
      addVerb(app, context, "import", "Takes the pipeline out of a file that `fuseline export` wrote of it", options,
              importPipeline);
  verb->add_option("FILE", options->file, "A module of TransformerEngine that was exported")->required();
  verb->add_option("-o,--output", options->output, "The file to write; without it standard output")->type_name("FILE");
  verb->add_flag("--force", options->replaces, "Replaces the file where it exists");
  verb->add_flag("--json", options->asJson, "Machine-readable output");
}

}  // namespace fuseline::cli
