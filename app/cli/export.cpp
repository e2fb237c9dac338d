// fuseline export: writes a pipeline, or a run, in a format of other programs.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/measuring_options.h"
#include "app/cli/output_file.h"
#include "app/cli/pipeline_options.h"
#include "app/cli/table.h"
#include "app/cli/verbs.h"
#include "core/export/exporter.h"
#include "core/export/html_comparison.h"
#include "core/export/model/weight_map.h"
#include "core/export/pipeline_exporter.h"
#include "core/profile/run_file.h"
#include "core/profile/run_folder.h"
#include "core/support/atomic_file.h"
#include "core/support/output_schema.h"
#include "core/support/visible_text.h"

#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline::cli {

namespace {
namespace export_parts {

struct ExportOptions : PipelineOptions {
  std::string format;
  std::string output;
  bool replaces = false;
  bool moduleOnly = false;
  std::int64_t onnxOpset = 0;
  std::string tensorsFile;
  /// Options of formats that have weights.
  std::vector<const CLI::Option*> ofWeights;
  /// Options that say how a pipeline is planned; a run has been.
  std::vector<const CLI::Option*> ofPlans;
};

template <class T>
void listFormats(std::span<const T> exporters, const char* of, Json& list, Table& table) {
  for (const T& exporter : exporters) {
    list.push_back(
        {{"name", exporter.name}, {"of", of}, {"extension", exporter.ending}, {"summary", exporter.summary}});
    table.addRow({std::string(exporter.name), of, fmt::format("*{}", exporter.ending), std::string(exporter.summary)});
  }
}

Result<int> listAllFormats(const ExportOptions& options, Context& context) {
  Json list = Json::array();
  Table table({{"format", Align::Left}, {"of", Align::Left}, {"file", Align::Left}, {"", Align::Left}});
  listFormats(pipelineExporters(), "pipeline", list, table);
  listFormats(exporters(), "run", list, table);
  if (options.asJson)
    printJson(context, {{"formats", list}});
  else
    context.out << table.toString(context.hasColour);
  return 0;
}

Error unknownFormat(const ExportOptions& options) {
  if (options.format.empty())
    return {"export: expected a format, such as --to te. `fuseline export` lists them.", ErrorKind::Usage};
  std::vector<std::string> names;
  for (const PipelineExporter& exporter : pipelineExporters()) names.emplace_back(exporter.name);
  for (const Exporter& exporter : exporters())
    if (!findPipelineExporter(exporter.name)) names.emplace_back(exporter.name);
  return {fmt::format("export --to {}: there is no such format{} Valid values: {}.", options.format,
                      didYouMean(nearest(options.format, names)), fmt::join(names, ", ")),
          ErrorKind::Usage};
}

/// A pipeline has no times.
Result<RunRecord> loadRun(const std::string& file) {
  Result<RunRecord> record = loadNotedRun(file);
  if (record || !file.ends_with(".fuseline")) return record;
  return Error{
      fmt::format("{}: expected a run, found a pipeline. Measure it first: `fuseline run {} -o RUN.fuserun`, "
                  "then export RUN.fuserun.",
                  file, file)};
}

Result<void> refuseOptionsOfWeights(const ExportOptions& options) {
  for (const CLI::Option* option : options.ofWeights)
    if (option->count() > 0)
      return Error{fmt::format("export --to {}: {} is an option for formats with weights, such as --to onnx.",
                               options.format, option->get_name()),
                   ErrorKind::Usage};
  return {};
}

Result<void> refuseOptionsOfPlans(const ExportOptions& options) {
  for (const CLI::Option* option : options.ofPlans)
    if (option->count() > 0)
      return Error{fmt::format("export --to {}: {} is an option for pipelines, but FILE is a run. Remove it.",
                               options.format, option->get_name()),
                   ErrorKind::Usage};
  return {};
}

Result<PipelineText> runText(const Exporter& exporter, const ExportOptions& options, const Context& context) {
  if (Result<void> fits = refuseOptionsOfPlans(options); !fits) return fits.error();
  const Result<RunRecord> record = loadRun(options.file);
  if (!record) return record.error();
  Result<std::string> text = exporter.writeWith(*record, {}, context.layOut);
  return text ? Result<PipelineText>(PipelineText{std::move(*text)}) : text.error();
}

Result<std::shared_ptr<const NamedTensors>> givenTensors(const ExportOptions& options,
                                                         const PipelineDocument& document) {
  if (options.tensorsFile.empty()) return std::shared_ptr<const NamedTensors>();
  Result<NamedTensors> tensors = readTensors(document, options.tensorsFile, options.spec.symbols);
  if (!tensors) return tensors.error();
  return std::make_shared<const NamedTensors>(std::move(*tensors));
}

Result<void> refuseOpset(const ExportOptions& options) {
  if (options.onnxOpset == 0 || options.format == "onnx") return {};
  return Error{fmt::format("export --to {}: --opset is an option for --to onnx.", options.format), ErrorKind::Usage};
}

Result<void> refuseModuleOnly(const ExportOptions& options) {
  if (!options.moduleOnly || options.format == "te" || options.format == "torch") return {};
  return Error{fmt::format("export --to {}: --module-only is an option for --to te and --to torch.", options.format),
               ErrorKind::Usage};
}

/// Only programs train.
Result<void> refuseOptimizer(const PipelineExporter& exporter, const ExportOptions& options) {
  if (options.spec.optimizer == Optimizer::None || exporter.name == "te" || exporter.name == "torch") return {};
  return Error{fmt::format("export --to {}: this format has no optimizer. Remove --optimizer, or use --to torch or "
                           "--to te.",
                           exporter.name),
               ErrorKind::Usage};
}

/// A run is a pipeline, too, but as it was measured; its file is another.
Result<PipelineText> pipelineText(const PipelineExporter& exporter, const ExportOptions& options, Context& context) {
  if (options.file.ends_with(".fuserun"))
    return Error{fmt::format(
        "{}: expected a pipeline, found a run. Export its *.fuseline file, or the run itself with --to trace.",
        options.file)};
  if (Result<void> fits = refuseOptimizer(exporter, options); !fits) return fits.error();
  const Result<OpenedPipeline> pipeline = openPipeline(options, context);
  if (!pipeline) return pipeline.error();
  Result<std::shared_ptr<const NamedTensors>> tensors = givenTensors(options, pipeline->loaded.document);
  if (!tensors) return tensors.error();
  Result<PipelineText> exported = exporter.write({.name = std::filesystem::path(options.file).stem().string(),
                                                  .document = pipeline->loaded.document,
                                                  .options = pipeline->options,
                                                  .analysis = pipeline->analysis,
                                                  .seed = options.spec.seed,
                                                  .tensors = std::move(*tensors),
                                                  .moduleOnly = options.moduleOnly,
                                                  .onnxOpset = options.onnxOpset,
                                                  .layOut = context.layOut});
  if (exported && !exported->bytes)
    if (Result<void> fits = refuseOptionsOfWeights(options); !fits) return fits.error();
  return exported;
}

/// A format of both takes what the file holds.
Result<PipelineText> exportedText(const ExportOptions& options, Context& context) {
  const PipelineExporter* const ofPipelines = findPipelineExporter(options.format);
  const Exporter* const ofRuns = findExporter(options.format);
  const bool isRun = options.file.ends_with(".fuserun") || holdsRun(options.file);
  if (ofPipelines && !(ofRuns && isRun)) return pipelineText(*ofPipelines, options, context);
  return ofRuns ? runText(*ofRuns, options, context) : unknownFormat(options);
}

Result<void> writeExported(const PipelineText& exported, const std::string& path) {
  const Result<std::string> content = contentOf(exported);
  if (!content) return content.error();
  return writeFileAtomically(path, [&](std::ostream& file) { file << *content; });
}

/// Bytes are for files: what is printed of them is their listing, with --json.
Result<void> refuseToPrintBytes(const PipelineText& exported, const ExportOptions& options) {
  if (!exported.bytes || !options.output.empty() || options.asJson) return {};
  return Error{
      fmt::format(
          "export --to {0}: the format is not text, so it needs a file: -o {1}{2}. --json prints a listing instead.",
          options.format, std::filesystem::path(options.file).stem().string(),
          findPipelineExporter(options.format)->ending),
      ErrorKind::Usage};
}

Result<void> checkFiles(const ExportOptions& options) {
  VerbFiles files{.read = filesRead(options), .written = {{"-o", options.output}}};
  files.read.emplace_back("--tensors", options.tensorsFile);
  return checkOutputs(files, options.replaces);
}

Result<int> exportFile(const ExportOptions& options, Context& context) {
  if (options.file.empty() && (!options.output.empty() || !options.format.empty()))
    return Error{
        "export: expected FILE, a pipeline or a run, found none. `fuseline export` without options lists the formats.",
        ErrorKind::Usage};
  if (options.file.empty()) return listAllFormats(options, context);
  if (Result<void> fits = refuseModuleOnly(options); !fits) return fits.error();
  if (Result<void> fits = refuseOpset(options); !fits) return fits.error();
  if (Result<void> files = checkFiles(options); !files) return files.error();
  const Result<PipelineText> exported = exportedText(options, context);
  if (!exported) return exported.error();
  if (Result<void> printable = refuseToPrintBytes(*exported, options); !printable) return printable.error();
  for (const std::string& note : exported->notes) context.err << fmt::format("note: {}\n", visibleText(note));
  if (!options.output.empty())
    if (Result<void> written = writeExported(*exported, options.output); !written) return written.error();
  if (options.asJson)
    printJson(
        context,
        {{"format", options.format}, {"file", options.output}, {"notes", exported->notes}, {"text", exported->text}});
  else if (options.output.empty())
    context.out << exported->text;
  else
    context.err << fmt::format("Wrote {}.\n", options.output);
  return 0;
}

Json exportSchema() {
  Json file =
      schema::object({{"format", schema::text("Name of the format.")},
                      {"file", schema::text("File that was written; empty: none.")},
                      {"notes", schema::list(schema::text("Differences between the other program and Fuseline."))},
                      {"text", schema::text("Contents; for binary formats a listing.")}});
  Json formats = schema::object(
      {{"formats", schema::list(schema::object({{"name", schema::text("Name of the format, as for --to.")},
                                                {"of", schema::choice({"pipeline", "run"})},
                                                {"extension", schema::text("File extension, such as .json.")},
                                                {"summary", schema::text("Summary, one sentence.")}}))}});
  return {{"oneOf", Json::array({formats, file})}};
}

}  // namespace export_parts
}  // namespace

void addExportVerb(CLI::App& app, Context& context) {
  using namespace export_parts;
  const auto options = std::make_shared<ExportOptions>();
  CLI::App* verb = addVerb(app, context, "export",
                           "Export a pipeline (TransformerEngine, PyTorch, ONNX, drawings) or a run (traces, tables, "
                           "reports); without FILE, list the formats.",
                           options, exportFile, exportSchema);
  const CLI::Option* file =
      verb->add_option("FILE", options->file, "Pipeline (*.fuseline) or run (*.fuserun)")->type_name("FILE");
  addReadingOptions(*verb, *options);
  addFusionOptions(*verb, *options);
  addRanksOption(*verb, *options);
  options->ofWeights = {
      addSpecOption(*verb, options->spec, runSpecField("seed"),
                    "Seed of the random weights, for formats that contain weights"),
      verb->add_option(
              "--tensors", options->tensorsFile,
              "Weights, such as those from `run --save` or `import --weights`, for formats that contain weights")
          ->type_name("IN.safetensors")};
  for (const CLI::Option* option : verb->get_options())
    if (option != file && !option->check_name("--json") && !option->check_name("--help"))
      options->ofPlans.push_back(option);
  verb->add_flag(
      "--module-only", options->moduleOnly,
      "With --to te and --to torch: only the module and its recipe, without the program that times and checks it");
  verb->add_option("--opset", options->onnxOpset,
                   "With --to onnx: 20 decomposes attention and rotary embeddings, 23 has ops for them (default: 20)")
      ->type_name("N")
      ->check(CLI::IsMember({20, 23}));
  verb->add_option("--to", options->format, "Format, as listed by `fuseline export`")->type_name("FORMAT");
  verb->add_option("-o,--output", options->output, "File to write (default: standard output)")->type_name("FILE");
  verb->add_flag("--force", options->replaces, "Overwrite an existing file");
}

}  // namespace fuseline::cli
