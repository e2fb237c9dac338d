// fuseline import: takes the pipeline out of a file that was made of one, or of another model.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/output_file.h"
#include "app/cli/pipeline_options.h"
#include "app/cli/verbs.h"
#include "core/document/file_format.h"
#include "core/export/model/model_import.h"
#include "core/export/model/weight_files.h"
#include "core/export/onnx/onnx_import.h"
#include "core/profile/run_file.h"
#include "core/runtime/measured_pipeline.h"
#include "core/runtime/pipeline_run.h"
#include "core/support/output_schema.h"
#include "core/support/visible_text.h"
#include "core/tensor/safetensors.h"

#include <cstdint>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {
namespace import_parts {

struct ImportOptions {
  std::string file;
  std::string output;
  std::string weights;
  std::string weightsFrom;
  std::string dtype;
  std::optional<std::int64_t> layers;
  RunSpec spec;  // symbols
  bool replaces = false;
  bool isStrict = false;
  bool keepsFlat = false;
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

/// They are beside the config, unless said otherwise.
std::filesystem::path weightsPath(const ImportOptions& options) {
  if (!options.weightsFrom.empty()) return options.weightsFrom;
  return std::filesystem::absolute(options.file).parent_path();
}

Result<ImportedPipeline> pipelineOfModel(const ImportOptions& options) {
  ModelImportOptions model{.layers = options.layers};
  if (!options.dtype.empty()) model.dtype = parseDType(options.dtype);
  if (!options.weights.empty()) model.weights = weightsPath(options);
  return importModel(options.file, model);
}

Result<ImportedPipeline> pipelineIn(const ImportOptions& options) {
  const std::string& path = options.file;
  if (isOnnxFile(path))
    return importOnnx(path, {.isStrict = options.isStrict,
                             .keepsFlat = options.keepsFlat,
                             .takesWeights = !options.weights.empty(),
                             .extents = {options.spec.symbols.begin(), options.spec.symbols.end()}});
  if (isModelConfig(path)) return pipelineOfModel(options);
  if (holdsRun(path)) return pipelineOfRun(path);
  Result<LoadedDocument> loaded = loadDocument(path);
  if (!loaded) return loaded.error();
  if (hasErrors(loaded->diagnostics))
    return Error{fmt::format("{} has no usable pipeline:\n{}", path, errorText(loaded->diagnostics, path))};
  return ImportedPipeline{.document = std::move(loaded->document)};
}

/// Nothing where they are not wanted.
Result<void> writeWeights(const ImportedPipeline& imported, const ImportOptions& options, Context& context) {
  if (options.weights.empty()) return {};
  if (imported.weightsProblem) return *imported.weightsProblem;
  const NamedTensors& weights = imported.weights;
  if (weights.empty()) {
    context.err << fmt::format("note: the model has no weights for these ops, so {} is not written.\n",
                               options.weights);
    return {};
  }
  if (Result<void> written = writeSafetensors(options.weights, weights); !written) return written.error();
  context.err << fmt::format("Wrote {} weights to {}, for run --tensors and export --tensors.\n", weights.size(),
                             options.weights);
  return {};
}

/// Where nobody can read, reading will say so.
void addWeightsRead(const ImportOptions& options, std::vector<NamedFile>& read) {
  const std::string option = options.weightsFrom.empty() ? "FILE's weights" : "--weights-from";
  if (const Result<WeightFiles> weights = WeightFiles::open(weightsPath(options)))
    for (const std::filesystem::path& file : weights->files()) read.emplace_back(option, file.string());
}

Result<void> checkOptions(const ImportOptions& options) {
  const bool isModel = isModelConfig(options.file);
  if (!options.weights.empty() && !isOnnxFile(options.file) && !isModel)
    return Error{
        "--weights: expected an ONNX model or the config.json of a model, found another file. Remove --weights.",
        ErrorKind::Usage};
  if (!isModel && (options.layers || !options.dtype.empty() || !options.weightsFrom.empty()))
    return Error{
        "--layers, --dtype and --weights-from: expected the config.json of a model, found another file. Remove these "
        "options.",
        ErrorKind::Usage};
  if (!isOnnxFile(options.file) && (options.isStrict || options.keepsFlat || !options.spec.symbols.empty()))
    return Error{"--strict, --flat and --set: expected an ONNX model, found another file. Remove these options.",
                 ErrorKind::Usage};
  if (!options.weightsFrom.empty() && options.weights.empty())
    return Error{"--weights-from: the file to write is missing. Add --weights OUT.safetensors.", ErrorKind::Usage};
  VerbFiles files{.read = {{"FILE", options.file}},
                  .written = {{"-o", options.output}, {"--weights", options.weights}}};
  if (isModel && !options.weights.empty()) addWeightsRead(options, files.read);
  return checkOutputs(files, options.replaces);
}

Result<int> importPipeline(const ImportOptions& given, Context& context) {
  ImportOptions options = given;
  options.file = modelConfigOf(given.file).string();
  if (Result<void> usable = checkOptions(options); !usable) return usable.error();
  const Result<ImportedPipeline> imported = pipelineIn(options);
  if (!imported) return imported.error();
  for (const std::string& note : imported->notes) context.err << fmt::format("note: {}\n", visibleText(note));
  if (isOnnxFile(options.file) && options.weights.empty())
    context.err
        << "note: To run with the model's weights, import with --weights OUT.safetensors and run with --tensors "
           "OUT.safetensors.\n";
  if (!options.output.empty())
    if (Result<void> saved = saveDocument(imported->document, options.output); !saved) return saved.error();
  const Result<void> weights = writeWeights(*imported, options, context);
  const std::string text = serialize(imported->document);
  if (options.asJson)
    printJson(context,
              {{"file", options.output}, {"notes", imported->notes}, {"tensors", imported->tensors}, {"text", text}});
  else if (options.output.empty())
    context.out << text;
  else
    context.err << fmt::format("Wrote {}. Next: fuseline fuse {}\n", options.output, options.output);
  return weights ? Result<int>(0) : weights.error();
}

Json importSchema() {
  return schema::object({{"file", schema::text("File that was written; empty: none.")},
                         {"notes", schema::list(schema::text(
                                       "Information that is missing in the model or cannot be stored in a pipeline."))},
                         {"tensors", schema::texts("The weights of the model.")},
                         {"text", schema::text("Text of the pipeline file.")}});
}

}  // namespace import_parts
}  // namespace

void addImportVerb(CLI::App& app, Context& context) {
  using namespace import_parts;
  const auto options = std::make_shared<ImportOptions>();
  CLI::App* verb = addVerb(app, context, "import",
                           "Import a pipeline from an ONNX model, the config.json of a Hugging Face model, or a file "
                           "that Fuseline exported.",
                           options, importPipeline, importSchema);
  verb->add_option("FILE", options->file,
                   "ONNX model (*.onnx), config.json of a model or its folder, exported file (*.py, *.svg, *.png, "
                   "*.html) or run (*.fuserun)")
      ->required();
  verb->add_option("-o,--output", options->output, "File to write (default: standard output)")->type_name("FILE");
  verb->add_option("--weights", options->weights,
                   "Also write the weights of the ONNX model, or those next to the config.json, for --tensors")
      ->type_name("OUT.safetensors");
  verb->add_option("--weights-from", options->weightsFrom,
                   "With --weights: safetensors file, or folder of such files (default: the config's folder)")
      ->type_name("PATH");
  verb->add_option("--layers", options->layers, "With a config.json: number of layers, counted from the first")
      ->type_name("N");
  verb->add_option("--dtype", options->dtype,
                   "With a config.json: dtype of tensors and weights (default: the config's)")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}));
  addSpecOption(*verb, options->spec, runSpecField("symbols"),
                "With an ONNX model: size of a dynamic dimension, for weights that depend on it");
  verb->add_flag("--strict", options->isStrict,
                 "Refuse ONNX models with nodes that Fuseline has no op for; by default such nodes become Externals or "
                 "are left out");
  verb->add_flag("--flat", options->keepsFlat,
                 "Keep repeated layers of an ONNX model separate; by default such layers become instances of a block");
  verb->add_flag("--force", options->replaces, "Overwrite existing files");
  verb->add_flag("--json", options->asJson, "Machine-readable output");
}

}  // namespace fuseline::cli
