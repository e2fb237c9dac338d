// fuseline run: runs a pipeline unfused and fused, interleaved, and prints one table.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/capture.h"
#include "app/cli/communication_table.h"
#include "app/cli/gate_report.h"
#include "app/cli/interrupt.h"
#include "app/cli/measuring_options.h"
#include "app/cli/numerics_table.h"
#include "app/cli/output_file.h"
#include "app/cli/recipe_matrix.h"
#include "app/cli/remote/on_option.h"
#include "app/cli/run_table.h"
#include "app/cli/terminal.h"
#include "app/cli/verbs.h"
#include "core/export/model/weight_map.h"
#include "core/profile/numerics_gate.h"
#include "core/profile/run_file.h"
#include "core/quant/recipe_list.h"
#include "core/runtime/pipeline_run.h"
#include "core/support/atomic_file.h"
#include "core/support/field_table.h"
#include "core/support/output_schema.h"
#include "core/tensor/safetensors.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {

struct RunOptions : MeasuringOptions {
  std::string recordFile;
  bool replaces = false;
  std::string note;
  std::vector<std::string> variants = {"unfused", "fused"};
  std::string tensorsFile;
  std::string dumpFile;
  std::string stateFile;
  std::optional<bool> wantsNumerics;  // nothing: of several recipes, and where there is a gate
  std::vector<std::string> gates;
  CaptureOptions capture;
  OnOption on;
};

/// Results that were requested in addition to times.
struct Findings {
  std::optional<NumericsReport> numerics;
  std::vector<GateReport> gates;
  NamedTensors captured;
  std::vector<TensorSummary> summaries;  // of what was captured
  std::vector<CapturableTensor> missing;
};

Result<PipelineRunOptions> runOptionsOf(const RunOptions& options, const PipelineDocument& document) {
  Result<PipelineRunOptions> run = pipelineRunOptions(options);
  if (!run) return run.error();
  run->variants = options.variants;
  if (options.tensorsFile.empty()) return run;
  Result<NamedTensors> tensors = readTensors(document, options.tensorsFile);
  if (!tensors) return tensors.error();
  run->tensors = std::move(*tensors);
  return run;
}

Result<std::unique_ptr<PipelineRun>> prepare(const RunOptions& options, Context& context) {
  Result<OpenedPipeline> pipeline = openPipeline(options, context);
  if (!pipeline) return pipeline.error();
  Result<PipelineRunOptions> runOptions = runOptionsOf(options, pipeline->loaded.document);
  if (!runOptions) return runOptions.error();
  runOptions->gains = pipeline->options.gains;
  Result<std::unique_ptr<PipelineRun>> run =
      PipelineRun::prepare(pipeline->loaded, pipelineNameOf(options), std::move(*runOptions), context.registry);
  if (run)
    for (const Diagnostic& diagnostic : (*run)->analysis().lowered.diagnostics)
      if (diagnostic.code == kPlacementCode) context.err << toString(diagnostic, options.file) << '\n';
  return run;
}

Result<std::vector<NumericsGate>> gatesOf(const RunOptions& options) {
  if (!options.gates.empty() && options.wantsNumerics == false)
    return Error{"--fail-if: a gate is about numerics, and --no-numerics denies them.", ErrorKind::Usage};
  std::vector<NumericsGate> gates;
  for (const std::string& text : options.gates) {
    Result<NumericsGate> gate = parseNumericsGate(text);
    if (!gate) return gate.error();
    gates.push_back(std::move(*gate));
  }
  return gates;
}

std::vector<GateReport> checkAll(const std::vector<NumericsGate>& gates, const std::optional<NumericsReport>& report) {
  std::vector<NumericsGateResult> results;
  for (const NumericsGate& gate : gates)
    if (report) results.push_back(check(gate, *report));
  return reportsOf(results);
}

Result<RunRecord> measure(PipelineRun& run, bool isQuiet, const std::stop_token& cancel) {
  ProgressBar bar(!isQuiet);
  return run.measure([&](std::string_view stage, int done, int total) { bar.show(stage, done, total); }, cancel);
}

Json summariesJson(const std::vector<TensorSummary>& summaries) {
  Json list = Json::array();
  for (const TensorSummary& summary : summaries) list.push_back(toJson(summary));
  return list;
}

void print(const RunRecord& record, const Findings& found, const RunOptions& options, Context& context) {
  if (options.asJson) {
    return printJson(context, {{"record", toJson(record)},
                               {"comparison", toJson(compareVariants(record))},
                               {"numerics", found.numerics ? toJson(*found.numerics) : Json()},
                               {"captured", summariesJson(found.summaries)},
                               {"gates", toJson(found.gates)}});
  }
  if (options.isQuiet) return;
  context.out << runTable(record, context.hasColour) << communicationTable(record, context.hasColour);
  if (found.numerics) context.out << "\n" << numericsTable(*found.numerics, context.hasColour);
  if (!found.summaries.empty()) context.out << "\n" << captureTable(found.summaries, found.missing, context.hasColour);
  context.out << toString(found.gates);
}

/// A run that was stopped before its first round has no times, and its files would replace whole ones.
bool hasRounds(const RunRecord& record) {
  return std::ranges::any_of(record.variants, [](const VariantRecord& each) { return !each.endToEndNs.empty(); });
}

/// A run that was stopped is not begun again.
Result<void> lookAtNumerics(const PipelineRun& run, const RunOptions& options, const std::stop_token& cancel,
                            Findings& found) {
  if (!options.wantsNumerics.value_or(!options.gates.empty()) || cancel.stop_requested()) return {};
  Result<NumericsReport> report = run.numerics(cancel);
  if (!report) return report.error();
  found.numerics = std::move(*report);
  return {};
}

Result<void> writeTensors(const Result<NamedTensors>& tensors, const std::string& path) {
  if (!tensors) return tensors.error();
  return writeSafetensors(path, *tensors);
}

Result<void> capture(const PipelineRun& run, TensorChoice choice, const std::stop_token& cancel, Findings& found) {
  if (choice.tensors.empty() || cancel.stop_requested()) return {};
  Result<NamedTensors> tensors = run.capture(choice, cancel);
  if (!tensors) return tensors.error();
  found.captured = std::move(*tensors);
  found.summaries = summariesOf(found.captured);
  found.missing = std::move(choice.missing);
  return {};
}

Result<TensorChoice> chooseToCapture(const PipelineRun& run, const RunOptions& options, Context& context) {
  if (options.capture.names.empty()) return TensorChoice();
  Result<TensorChoice> choice = chosenTensors(run.analysis().graph(), run.capturable(), options.capture);
  if (choice && !options.isQuiet)
    context.err << fmt::format("Captures {} tensor{}, {}.\n", choice->tensors.size(),
                               choice->tensors.size() == 1 ? "" : "s", formatBytes(choice->bytes()));
  return choice;
}

/// The tensors of the plan that --capture would read.
Result<int> listCapturable(const RunOptions& options, Context& context) {
  const Result<OpenedPipeline> pipeline = openPipeline(options, context);
  if (!pipeline) return pipeline.error();
  const Analysis& analysis = pipeline->analysis;
  const bool isUnfused = !options.variants.empty() && options.variants.back() == "unfused";
  const auto tensors = capturableTensors(analysis, isUnfused ? *analysis.unfusedPlan : *analysis.fusedPlan);
  if (options.asJson)
    printJson(context, {{"capturable", toJson(tensors)}});
  else
    context.out << capturableTable(tensors, context.hasColour);
  return 0;
}

Result<void> writeFiles(const PipelineRun& run, const RunRecord& record, const Findings& found,
                        const RunOptions& options) {
  if (!options.recordFile.empty())
    if (Result<void> written = saveRunRecord(record, options.recordFile); !written) return written;
  if (!options.dumpFile.empty())
    if (Result<void> written = writeTensors(run.dump(), options.dumpFile); !written) return written;
  if (!found.captured.empty())
    if (Result<void> written = writeCaptured(found.captured, options.capture); !written) return written;
  return options.stateFile.empty() ? Result<void>() : writeTensors(run.state(), options.stateFile);
}

/// Files of all options.
VerbFiles filesOf(const RunOptions& options) {
  VerbFiles files{.read = filesRead(options),
                  .written = {{"-o", options.recordFile},
                              {"--dump", options.dumpFile},
                              {"--save", options.stateFile},
                              {"--captured", options.capture.output}}};
  files.read.emplace_back("--tensors", options.tensorsFile);
  return files;
}

/// A run whose files cannot be written is refused before it is measured.
Result<void> checkFiles(const RunOptions& options) {
  if (Result<void> different = checkDifferent(filesOf(options)); !different) return different;
  if (Result<void> free = checkFree(options.recordFile, options.replaces); !free) return free;
  for (const std::string* path : {&options.recordFile, &options.dumpFile, &options.stateFile})
    if (!path->empty())
      if (Result<void> writable = checkWritable(*path); !writable) return writable;
  return checkCaptureFiles(options.capture);
}

Result<void> checkNoFiles(const RunOptions& options) {
  for (const auto& [name, path] : {std::pair("-o", &options.recordFile),
                                   {"--dump", &options.dumpFile},
                                   {"--save", &options.stateFile},
                                   {"--note", &options.note}})
    if (!path->empty())
      return Error{fmt::format("{} {}: expected one recipe, found --recipe {}. A file is that of one run: name one "
                               "recipe, or take --json, which has the record of each.",
                               name, *path, options.spec.recipe),
                   ErrorKind::Usage};
  if (options.capture.names.empty()) return {};
  return Error{fmt::format("--capture {}: expected one recipe, found --recipe {}.", options.capture.names.front(),
                           options.spec.recipe),
               ErrorKind::Usage};
}

Result<int> runMatrix(const RunOptions& options, Context& context, const std::stop_token& cancel) {
  if (!options.gates.empty())
    return Error{fmt::format("--fail-if {}: expected one recipe, found --recipe {}.", options.gates.front(),
                             options.spec.recipe),
                 ErrorKind::Usage};
  if (!options.measuredFiles.empty())
    return Error{"--measured: the figures of a run hold for its own recipe, and several are compared.",
                 ErrorKind::Usage};
  if (Result<void> none = checkNoFiles(options); !none) return none.error();
  RunOptions plain = options;
  plain.spec.recipe.clear();
  Result<std::vector<const RecipeDefinition*>> recipes = recipesNamed(options.spec.recipe);
  if (!recipes) return Error{fmt::format("--recipe: {}", recipes.error().message), ErrorKind::Usage};
  const Result<OpenedPipeline> pipeline = openPipeline(plain, context);
  if (!pipeline) return pipeline.error();
  Result<PipelineRunOptions> runOptions = runOptionsOf(plain, pipeline->loaded.document);
  if (!runOptions) return runOptions.error();
  runOptions->gains = pipeline->options.gains;
  return runRecipes({.loaded = pipeline->loaded,
                     .pipelineName = pipelineNameOf(options),
                     .options = std::move(*runOptions),
                     .recipes = std::move(*recipes),
                     .wantsNumerics = options.wantsNumerics.value_or(true),
                     .asJson = options.asJson,
                     .isQuiet = options.isQuiet},
                    context, cancel);
}

/// Findings after the rounds. A finding that fails gives its reason; measured times are kept.
Result<void> look(const PipelineRun& run, TensorChoice choice, const std::vector<NumericsGate>& gates,
                  const RunOptions& options, const std::stop_token& cancel, Findings& found) {
  if (Result<void> looked = lookAtNumerics(run, options, cancel, found); !looked) return looked;
  found.gates = checkAll(gates, found.numerics);
  return capture(run, std::move(choice), cancel, found);
}

/// Checked before the measurement.
Result<void> checkOneRank(const RunOptions& options) {
  if (options.spec.ranks == 1) return {};
  const bool wantsNumerics = options.wantsNumerics.value_or(!options.gates.empty());
  const bool captures = !options.capture.names.empty() || options.capture.listsOnly;
  if (!wantsNumerics && !captures) return {};
  return Error{fmt::format("{}: expected one rank, found --ranks {}. Leave out one of the two.",
                           wantsNumerics ? "--numerics" : "--capture", options.spec.ranks),
               ErrorKind::Usage};
}

Result<int> runThere(const RunOptions& options, Context& context) {
  if (Result<void> files = checkFiles(options); !files) return files.error();
  return callThere(options.on, {.files = filesOf(options), .replaces = options.replaces, .isQuiet = options.isQuiet},
                   context);
}

Result<int> runPipeline(const RunOptions& options, Context& context) {
  if (options.on.isGiven()) return runThere(options, context);
  const InterruptWatch interrupt;  // before any thread of a backend exists, so that all inherit the blocked signals
  if (Result<void> one = checkOneRank(options); !one) return one.error();
  if (options.capture.listsOnly) return listCapturable(options, context);
  if (namesSeveralRecipes(options.spec.recipe)) return runMatrix(options, context, interrupt.token());
  const Result<std::vector<NumericsGate>> gates = gatesOf(options);
  if (!gates) return gates.error();
  if (Result<void> files = checkFiles(options); !files) return files.error();
  Result<std::unique_ptr<PipelineRun>> run = prepare(options, context);
  if (!run) return run.error();
  Result<TensorChoice> choice = chooseToCapture(**run, options, context);
  if (!choice) return choice.error();
  if (Result<void> free = checkCapturedFree(*choice, options.capture, options.replaces); !free) return free.error();
  Result<RunRecord> record = measure(**run, options.isQuiet, interrupt.token());
  if (!record) return record.error();
  Findings found;
  const Result<void> looked = look(**run, std::move(*choice), *gates, options, interrupt.token(), found);
  record->note = options.note;
  if (found.numerics) record->numerics = summarized(*found.numerics);
  if (record->isPartial && !hasRounds(*record))
    return Error{"The run was cancelled before its first round; nothing was written.", ErrorKind::RunFailed};
  print(*record, found, options, context);
  if (Result<void> written = writeFiles(**run, *record, found, options); !written) return written.error();
  if (!looked) return looked.error();
  if (record->isPartial || interrupt.token().stop_requested())
    return Error{"The run was cancelled.", ErrorKind::RunFailed};
  return exitCodeOf(found.gates);
}

void addVariantsOption(CLI::App& verb, RunOptions& options) {
  verb.add_option("--variants", options.variants, "unfused, fused or both")
      ->allow_extra_args(false)
      ->delimiter(',')
      ->check(CLI::IsMember({"unfused", "fused"}));
}

void addRunFiles(CLI::App& verb, RunOptions& options) {
  verb.add_option("-o,--output", options.recordFile, "Writes the run record")->type_name("RUN.fuserun");
  verb.add_flag("--force", options.replaces, "Replaces that file, and those of --captured, where they exist");
  verb.add_option("--note", options.note, "Note on the run, kept in its record and shown in comparisons")
      ->type_name("TEXT");
  verb.add_option("--tensors", options.tensorsFile, "Inputs, parameters, main_grad buffers and output gradients")
      ->type_name("IN.safetensors");
  verb.add_option("--dump", options.dumpFile, "Runs again and writes every tensor")->type_name("OUT.safetensors");
  verb.add_option("--save", options.stateFile,
                  "Writes parameters, main_grad buffers and quantizer states, for --tensors")
      ->type_name("STATE.safetensors");
  verb.add_flag("--quiet", options.isQuiet, "No table and no progress");
  verb.add_option("--fail-if", options.gates,
                  "Exits 5, such as \"error>tolerance\" or \"error>0.5%\": of results of the fused plan against the "
                  "unfused one; float-error: of that against float32")
      ->type_name("GATE")
      ->allow_extra_args(false);
  // A flag that is bound to an optional gives it a value before anything is parsed (CLI11 2.1).
  verb.add_flag_callback(
      "--numerics", [&options] { options.wantsNumerics = true; },
      "Also: what the number formats do to every tensor; of several recipes unless it is denied");
  verb.add_flag_callback(
      "--no-numerics", [&options] { options.wantsNumerics = false; }, "Not of several recipes either");
}

Json runSchema() {
  const Json one = schema::object({{"record", fieldSchema<RunRecord>()},
                                   {"comparison", comparisonSchema()},
                                   {"numerics", schema::orNull(fieldSchema<NumericsReport>())},
                                   {"captured", fieldSchema<std::vector<TensorSummary>>()},
                                   {"gates", gatesSchema()}});
  return {{"oneOf", Json::array({one, matrixSchema(), capturableSchema()})}};
}

}  // namespace

void addRunVerb(CLI::App& app, Context& context) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App* verb = addVerb(
      app, context, "run",
      "Runs a pipeline unfused and fused, and prints one table; --recipe all, or a list of names, compares recipes",
      options, runPipeline, runSchema);
  addFileOptions(*verb, *options);
  addFusionOptions(*verb, *options);
  addVariantsOption(*verb, *options);
  addSpecOptions(*verb, options->spec, SpecGroup::Measuring);
  addSpecOptions(*verb, options->spec, SpecGroup::Ranks);
  addSpecOptions(*verb, options->spec, SpecGroup::Peaks);
  addRunFiles(*verb, *options);
  addCaptureOptions(*verb, options->capture);
  addOnOption(
      *verb, options->on,
      "Runs on another machine over ssh: a host of ~/.ssh/config, or user@host:port. Files are read and written "
      "here");
}

}  // namespace fuseline::cli
