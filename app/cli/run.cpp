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
#include "app/ranks/mpi_module.h"
#include "app/ranks/rank_job.h"
#include "app/ranks/supervisor.h"
#include "core/collective/lone_rank.h"
#include "core/export/model/model_files.h"
#include "core/export/model/weight_map.h"
#include "core/profile/numerics_gate.h"
#include "core/profile/run_file.h"
#include "core/profile/run_pipeline.h"
#include "core/quant/recipe_list.h"
#include "core/runtime/layer_prediction.h"
#include "core/runtime/pipeline_run.h"
#include "core/runtime/rank_prediction.h"
#include "core/sharding/rank_files.h"
#include "core/support/atomic_file.h"
#include "core/support/field_table.h"
#include "core/support/output_schema.h"
#include "core/tensor/safetensors.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline::cli {

namespace {
namespace run_parts {

struct RunOptions : MeasuringOptions {
  std::string recordFile;
  bool replaces = false;
  std::string note;
  std::vector<std::string> variants = {"unfused", "fused"};
  std::string tensorsFile;
  std::string dumpFile;
  std::string stateFile;
  bool savesModelNames = false;
  std::optional<bool> wantsNumerics;  // nothing: of several recipes, and where there is a gate
  std::vector<std::string> gates;
  CaptureOptions capture;
  OnOption on;
  std::string ranksAs;  // "threads", "processes", "mpi"; empty: as the launcher says, else threads
  std::string hosts;
  double rankTimeout = 0.0;  // seconds; 0: automatic
  std::vector<int> predictedRanks;
  bool predictsLayers = false;
  std::string link = "nvlink4";
  std::shared_ptr<Communicator> loneRank;  // instead of other ranks
  RankJob* job = nullptr;                  // this process is one of its ranks

  bool isAlone() const { return !job; }
  bool writesFiles() const { return !job || job->speaks(); }
};

/// Results that were requested in addition to times.
struct Findings {
  std::optional<NumericsReport> numerics;
  std::vector<GateReport> gates;
  NamedTensors captured;
  std::vector<TensorSummary> summaries;  // of what was captured
  std::vector<CapturableTensor> missing;
};

/// A rank that hangs holds its thread, and on a GPU its memory: the process ends without them.
RankWatch rankWatch(const RunOptions& options) {
  RankWatch watch{.whenRankHangs = [](const Error& error) {
    fmt::print(stderr, "fuseline: {}\n", error.message);
    std::_Exit(static_cast<int>(error.kind));
  }};
  if (options.rankTimeout > 0.0) watch.patience = Patience(Seconds(options.rankTimeout));
  return watch;
}

Result<PipelineRunOptions> runOptionsOf(const RunOptions& options, const PipelineDocument& document) {
  Result<PipelineRunOptions> run = pipelineRunOptions(options);
  if (!run) return run.error();
  run->variants = options.variants;
  run->watch = rankWatch(options);
  if (options.loneRank) run->communicator = options.loneRank;
  if (options.job) run->communicator = options.job->communicator();
  if (options.job) run->ranksOfMachine = options.job->ranksOfMachine();
  if (options.tensorsFile.empty()) return run;
  Result<NamedTensors> tensors = readTensors(document, options.tensorsFile, options.spec.symbols);
  if (!tensors) return tensors.error();
  run->tensors = std::move(*tensors);
  return run;
}

/// The tensors of the variant that is run last.
std::vector<CapturableTensor> capturableOf(const Analysis& analysis, const RunOptions& options) {
  const bool isUnfused = !options.variants.empty() && options.variants.back() == "unfused";
  return capturableTensors(analysis, isUnfused ? analysis.unfusedPlan() : *analysis.fusedPlan);
}

/// Refuses a wrong --capture before memory is allocated.
Result<void> checkCapture(const Analysis& analysis, const RunOptions& options) {
  if (options.capture.names.empty()) return {};
  const Result<TensorChoice> choice = chosenTensors(analysis.graph(), capturableOf(analysis, options), options.capture);
  return choice ? Result<void>() : choice.error();
}

Result<std::unique_ptr<PipelineRun>> prepare(const RunOptions& options, Context& context) {
  Result<OpenedPipeline> pipeline = openPipeline(options, context);
  if (!pipeline) return pipeline.error();
  if (Result<void> named = checkCapture(pipeline->analysis, options); !named) return named.error();
  Result<PipelineRunOptions> runOptions = runOptionsOf(options, pipeline->loaded.document);
  if (!runOptions) return runOptions.error();
  runOptions->gains = pipeline->options.gains;
  Result<std::unique_ptr<PipelineRun>> run =
      PipelineRun::prepare(pipeline->loaded, pipelineNameOf(options), std::move(*runOptions), context.registry);
  if (!run) return run;
  for (const Diagnostic& diagnostic : (*run)->analysis().lowered.diagnostics)
    if (diagnostic.code == kPlacementCode) context.err << toString(diagnostic, options.file) << '\n';
  if (options.predictedRanks.empty()) noteChunks(options.spec, options.spec.ranks, (*run)->analysis(), context.err);
  return run;
}

Result<std::vector<NumericsGate>> gatesOf(const RunOptions& options) {
  if (!options.gates.empty() && options.wantsNumerics == false)
    return Error{"--fail-if needs numerics. Remove --no-numerics.", ErrorKind::Usage};
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

/// All ranks of a job collect the tensors, and one writes them.
Result<void> writeTensors(const Result<NamedTensors>& tensors, const std::string& path, const RunOptions& options) {
  if (!tensors) return tensors.error();
  return options.writesFiles() ? writeSafetensors(path, *tensors) : Result<void>();
}

/// A name that ends in a slash, or a folder that exists.
bool savesToFolder(const RunOptions& options) {
  std::error_code ignored;
  return options.stateFile.ends_with('/') || std::filesystem::is_directory(options.stateFile, ignored);
}

/// --save of a folder writes the shards of each rank, or the files of a model.
bool savesShards(const RunOptions& options) { return savesToFolder(options) && !options.savesModelNames; }
bool savesModelFolder(const RunOptions& options) { return savesToFolder(options) && options.savesModelNames; }

/// Ranks that are processes write their own files.
Result<void> writeShards(const PipelineRun& run, const RunOptions& options) {
  const Result<std::vector<NamedTensors>> states = run.stateOfRanks();
  if (!states) return states.error();
  const auto ranks = static_cast<int>(states->size());
  for (int rank = 0; rank < ranks; ++rank) {
    if (options.job && options.job->rank() != rank) continue;
    Result<void> written =
        writeRankFile(options.stateFile, rank, ranks, (*states)[static_cast<std::size_t>(rank)], run.analysis().shards);
    if (!written) return written;
  }
  return {};
}

/// The tensors that --save writes to one file.
Result<NamedTensors> stateOf(const PipelineRun& run, const RunRecord& record, const RunOptions& options) {
  Result<NamedTensors> state = run.state();
  if (!state || !options.savesModelNames) return state;
  return withModelNames(pipelineOf(record).document, std::move(*state));
}

Result<void> writeState(const PipelineRun& run, const RunRecord& record, const RunOptions& options) {
  if (options.stateFile.empty()) return {};
  if (savesShards(options)) return writeShards(run, options);
  Result<NamedTensors> state = stateOf(run, record, options);
  if (!state || !savesModelFolder(options)) return writeTensors(state, options.stateFile, options);
  return options.writesFiles() ? writeModelFiles(modelFileOf(options.stateFile), std::move(*state)) : Result<void>();
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
  const auto tensors = capturableOf(analysis, options);
  if (options.asJson)
    printJson(context, {{"capturable", toJson(tensors)}});
  else
    context.out << capturableTable(tensors, context.hasColour);
  return 0;
}

Result<void> writeFiles(const PipelineRun& run, const RunRecord& record, const Findings& found,
                        const RunOptions& options) {
  if (!options.recordFile.empty() && options.writesFiles())
    if (Result<void> written = saveRunRecord(record, options.recordFile); !written) return written;
  if (!options.dumpFile.empty())
    if (Result<void> written = writeTensors(run.dump(), options.dumpFile, options); !written) return written;
  if (!found.captured.empty())
    if (Result<void> written = writeCaptured(found.captured, options.capture); !written) return written;
  return writeState(run, record, options);
}

/// Files of all options.
VerbFiles filesOf(const RunOptions& options) {
  VerbFiles files{
      .read = filesRead(options),
      .written = {{"-o", options.recordFile},
                  {"--dump", options.dumpFile},
                  {"--save", savesModelFolder(options) ? modelFileOf(options.stateFile).string() : options.stateFile},
                  {"--captured", options.capture.output}}};
  files.read.emplace_back("--tensors", options.tensorsFile);
  return files;
}

/// The file has a name that the user did not give: weights that are there are not replaced without --force.
Result<void> checkModelFolder(const RunOptions& options) {
  const std::string file = modelFileOf(options.stateFile).string();
  if (Result<void> free = checkFree(file, options.replaces); !free) return free;
  if (Result<void> alone = checkModelFile(file); !alone) return alone;
  return checkWritable(file);
}

/// A run whose files cannot be written is refused before it is measured.
Result<void> checkFiles(const RunOptions& options) {
  if (!options.writesFiles()) return {};
  if (Result<void> different = checkDifferent(filesOf(options)); !different) return different;
  if (Result<void> free = checkFree(options.recordFile, options.replaces); !free) return free;
  if (savesToFolder(options))
    if (Result<void> made = makeFolder("--save", options.stateFile); !made) return made;
  if (savesModelFolder(options))
    if (Result<void> fits = checkModelFolder(options); !fits) return fits;
  if (savesShards(options))
    if (Result<void> fits = checkRankFolder(options.stateFile, options.spec.ranks); !fits) return fits;
  for (const std::string* path : {&options.recordFile, &options.dumpFile, &options.stateFile})
    if (!path->empty() && (path != &options.stateFile || !savesToFolder(options)))
      if (Result<void> writable = checkWritable(*path); !writable) return writable;
  return checkCaptureFiles(options.capture);
}

Result<void> checkNoFiles(const RunOptions& options) {
  for (const auto& [name, path] : {std::pair("-o", &options.recordFile),
                                   {"--dump", &options.dumpFile},
                                   {"--save", &options.stateFile},
                                   {"--note", &options.note}})
    if (!path->empty())
      return Error{fmt::format("{} {}: a file holds one run; expected one recipe, found --recipe {}. Name one, or use "
                               "--json for all records.",
                               name, *path, options.spec.recipe),
                   ErrorKind::Usage};
  if (options.capture.names.empty()) return {};
  return Error{fmt::format("--capture {}: expected one recipe, found --recipe {}. Name one.",
                           options.capture.names.front(), options.spec.recipe),
               ErrorKind::Usage};
}

Result<int> runMatrix(const RunOptions& options, Context& context, const std::stop_token& cancel) {
  if (!options.gates.empty())
    return Error{fmt::format("--fail-if {}: expected one recipe, found --recipe {}. Name one.", options.gates.front(),
                             options.spec.recipe),
                 ErrorKind::Usage};
  if (!options.isAlone())
    return Error{fmt::format("--recipe {}: ranks as processes run one recipe. Name one.", options.spec.recipe),
                 ErrorKind::Usage};
  if (!options.measuredFiles.empty())
    return Error{"--measured: a run belongs to one recipe, but several are compared. Remove --measured.",
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
  return Error{fmt::format("{}: expected one rank, found --ranks {}. Remove one of the two.",
                           wantsNumerics ? "--numerics" : "--capture", options.spec.ranks),
               ErrorKind::Usage};
}

Result<int> runThere(const RunOptions& options, Context& context) {
  if (savesToFolder(options))
    return Error{fmt::format("--save {}: a folder cannot be written from another machine. Name a .safetensors file, or "
                             "remove --on.",
                             options.stateFile),
                 ErrorKind::Usage};
  if (Result<void> files = checkFiles(options); !files) return files.error();
  return callThere(options.on, {.files = filesOf(options), .replaces = options.replaces, .isQuiet = options.isQuiet},
                   context);
}

/// Before the first communication.
struct PreparedRun {
  std::vector<NumericsGate> gates;
  std::unique_ptr<PipelineRun> run;
  TensorChoice choice;
};

Result<PreparedRun> prepareAll(const RunOptions& options, Context& context) {
  PreparedRun prepared;
  Result<std::vector<NumericsGate>> gates = gatesOf(options);
  if (!gates) return gates.error();
  if (Result<void> files = checkFiles(options); !files) return files.error();
  Result<std::unique_ptr<PipelineRun>> run = prepare(options, context);
  if (!run) return run.error();
  Result<TensorChoice> choice = chooseToCapture(**run, options, context);
  if (!choice) return choice.error();
  if (Result<void> free = checkCapturedFree(*choice, options.capture, options.replaces); !free) return free.error();
  return PreparedRun{std::move(*gates), std::move(*run), std::move(*choice)};
}

/// A line a step, with what it communicates.
std::string stepsText(const Plan& plan) {
  std::string text;
  for (const Step& step : plan.steps) {
    text += fmt::format("step {} ({})", step.name, phaseName(step.phase));
    if (step.collective)
      for (const CollectivePart& part : collectiveParts(plan, step, {}))
        text += fmt::format(", {} of {} {}", collectiveName(step.collective->kind), part.count, dtypeName(part.dtype));
    text += '\n';
  }
  return text;
}

void addOptions(const RunOptions& options, std::vector<JobFact>& facts) {
  constexpr const char* kAdvice = "Start all ranks with the same options.";
  for (const SpecField& field : runSpecFields())
    facts.push_back(
        {fmt::format("--{}", field.option), fmt::format("{}", fmt::join(textsOf(field, options.spec), " ")), kAdvice});
  facts.push_back({"--variants", fmt::format("{}", fmt::join(options.variants, ",")), kAdvice});
}

std::vector<JobFact> factsOf(const PreparedRun& prepared, const RunOptions& options) {
  const Analysis& analysis = prepared.run->analysis();
  std::error_code none;
  const auto tensorBytes = options.tensorsFile.empty() ? 0 : std::filesystem::file_size(options.tensorsFile, none);
  std::vector<JobFact> facts = {
      {"the pipeline", prepared.run->pipelineHash(), "Give all ranks the same file."},
      {"the size of --tensors in bytes", std::to_string(tensorBytes), "Give all ranks the same file."}};
  addOptions(options, facts);
  facts.push_back({"the unfused plan", stepsText(analysis.unfusedPlan()), "Run all ranks on identical hardware."});
  facts.push_back({"the fused plan", stepsText(*analysis.fusedPlan), "Run all ranks on identical hardware."});
  return facts;
}

Result<void> agree(const Result<PreparedRun>& prepared, const RunOptions& options) {
  if (options.isAlone()) return prepared ? Result<void>() : prepared.error();
  return prepared ? options.job->agree({}, factsOf(*prepared, options)) : options.job->agree(prepared.error(), {});
}

Result<int> runPipeline(const RunOptions& options, Context& context) {
  const InterruptWatch interrupt;  // before any thread of a backend exists, so that all inherit the blocked signals
  if (Result<void> one = checkOneRank(options); !one) return one.error();
  if (options.capture.listsOnly) return listCapturable(options, context);
  if (namesSeveralRecipes(options.spec.recipe)) return runMatrix(options, context, interrupt.token());
  Result<PreparedRun> prepared = prepareAll(options, context);
  if (Result<void> agreed = agree(prepared, options); !agreed) return agreed.error();
  PipelineRun& run = *prepared->run;
  Result<RunRecord> record = measure(run, options.isQuiet, interrupt.token());
  if (!record) return record.error();
  Findings found;
  const Result<void> looked =
      look(run, std::move(prepared->choice), prepared->gates, options, interrupt.token(), found);
  record->note = options.note;
  if (found.numerics) record->numerics = summarized(*found.numerics);
  if (record->isPartial && options.job) options.job->noteCancelled();
  if (record->isPartial && !hasRounds(*record))
    return Error{"The run was cancelled before its first round; nothing was written.", ErrorKind::RunFailed};
  print(*record, found, options, context);
  if (Result<void> written = writeFiles(run, *record, found, options); !written) return written.error();
  if (!looked) return looked.error();
  if (record->isPartial || (interrupt.token().stop_requested() && options.writesFiles()))
    return Error{"The run was cancelled.", ErrorKind::RunFailed};
  return exitCodeOf(found.gates);
}

/// Errors (Usage): an option that needs values, or times, of all ranks.
Result<void> checkPredicted(const RunOptions& options) {
  const std::pair<const char*, bool> others[] = {{"-o", !options.recordFile.empty()},
                                                 {"--dump", !options.dumpFile.empty()},
                                                 {"--save", !options.stateFile.empty()},
                                                 {"--ranks", options.spec.ranks != 1},
                                                 {"--capture", !options.capture.names.empty()},
                                                 {"--fail-if", !options.gates.empty()},
                                                 {"--numerics", options.wantsNumerics.value_or(false)}};
  for (const auto& [option, isGiven] : others)
    if (isGiven)
      return Error{fmt::format("{}: not available with {}. Remove one of the two.", option,
                               options.predictsLayers ? "--predict-layers" : "--predict-ranks"),
                   ErrorKind::Usage};
  return {};
}

/// Rank 0 alone computes with the shapes of one of `ranks` ranks.
Result<std::vector<RankPrediction>> predictFor(int ranks, const RankLink& link, RunOptions options, Context& context,
                                               const std::stop_token& cancel) {
  options.spec.ranks = ranks;
  options.spec.measuresPeaks = false;
  if (ranks > 1) options.loneRank = makeLoneRank(ranks);
  Result<std::unique_ptr<PipelineRun>> run = prepare(options, context);
  if (!run) return run.error();
  Result<RunRecord> record = measure(**run, options.isQuiet, cancel);
  if (!record) return record.error();
  if (record->isPartial) return Error{"The prediction was cancelled.", ErrorKind::RunFailed};
  return predict(*record, (*run)->analysis(), link);
}

Result<int> predictRanks(const RunOptions& options, Context& context) {
  const InterruptWatch interrupt;
  if (Result<void> fits = checkPredicted(options); !fits) return fits.error();
  const Result<RankLink> link = parseLink(options.link);
  if (!link) return link.error();
  std::vector<int> numbers = {1};
  for (const int ranks : options.predictedRanks)
    if (std::ranges::count(numbers, ranks) == 0) numbers.push_back(ranks);
  std::vector<RankPrediction> predictions;
  for (const int ranks : numbers) {
    const auto more = predictFor(ranks, *link, options, context, interrupt.token());
    if (!more) return more.error();
    predictions.insert(predictions.end(), more->begin(), more->end());
  }
  if (options.asJson)
    printJson(context, toJson(predictions, *link));
  else
    context.out << predictionTable(predictions, *link, context.hasColour);
  return 0;
}

/// Runs a model that has each of its layers once.
Result<int> predictLayers(const RunOptions& options, Context& context) {
  const InterruptWatch interrupt;
  if (Result<void> fits = checkPredicted(options); !fits) return fits.error();
  Result<OpenedPipeline> pipeline = openPipeline(options, context);
  if (!pipeline) return pipeline.error();
  Result<ShortenedModel> model = withLayersOnce(pipeline->loaded.document);
  if (!model) return model.error();
  Result<PipelineRunOptions> runOptions = runOptionsOf(options, pipeline->loaded.document);
  if (!runOptions) return runOptions.error();
  runOptions->takesTensorsThatFit = true;
  pipeline->loaded.document = std::move(model->document);
  const Result<std::unique_ptr<PipelineRun>> run =
      PipelineRun::prepare(pipeline->loaded, pipelineNameOf(options), std::move(*runOptions), context.registry);
  if (!run) return run.error();
  const Result<RunRecord> record = measure(**run, options.isQuiet, interrupt.token());
  if (!record) return record.error();
  if (record->isPartial) return Error{"The prediction was cancelled.", ErrorKind::RunFailed};
  const std::vector<LayerPrediction> predictions = predict(*record, model->layers);
  if (options.asJson)
    printJson(context, toJson(predictions));
  else
    context.out << toString(predictions);
  return 0;
}

std::optional<std::string> variableOf(const char* name) {
  const char* const value = std::getenv(name);
  return value ? std::optional<std::string>(value) : std::nullopt;
}

/// Only rank 0 reports an error that all ranks find.
Result<int> refuseOnce(const LaunchPlace& place, Error error) {
  if (place.rank == 0) return error;
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // launchers end all ranks when the first one fails
  return static_cast<int>(error.kind);
}

/// The error of a rank, reported late: launchers end it before if rank 0 reports the same.
Error lateError(Error error) {
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  return error;
}

/// This process is one rank of a job. Ranks other than 0 print nothing.
Result<int> runAsRank(const LaunchPlace& place, RunOptions options, Context& context) {
  if (options.spec.ranks != 1 && options.spec.ranks != place.size)
    return refuseOnce(place, {fmt::format("--ranks {}: {} started {} ranks. Remove --ranks, or start as many.",
                                          options.spec.ranks, place.launcher, place.size),
                              ErrorKind::Usage});
  options.spec.ranks = place.size;
  const std::optional<Seconds> timeout =
      options.rankTimeout > 0.0 ? std::optional(Seconds(options.rankTimeout)) : std::nullopt;
  const Result<std::unique_ptr<RankJob>> job = RankJob::join(place, timeout);
  if (!job) return place.rank == 0 ? job.error() : lateError(job.error());
  options.job = job->get();
  if ((*job)->speaks()) return (*job)->leave(runPipeline(options, context), context.err);
  options.isQuiet = true;
  std::ostream nothing(nullptr);
  Context silent{.registry = context.registry, .out = nothing, .err = nothing, .commands = nothing};
  return (*job)->leave(runPipeline(options, silent), context.err);
}

Result<int> runAnywhere(const RunOptions& options, Context& context) {
  if (options.on.isGiven()) return runThere(options, context);
  if (!options.predictedRanks.empty()) return predictRanks(options, context);
  if (options.predictsLayers) return predictLayers(options, context);
  const Result<std::optional<LaunchPlace>> place = launchPlace(variableOf);
  if (!place) return place.error();
  if (options.ranksAs == "threads") return runPipeline(options, context);
  if (*place) return runAsRank(**place, options, context);
  const bool wantsMpi = options.ranksAs == "mpi" || !options.hosts.empty();
  if (!wantsMpi && options.ranksAs.empty()) return runPipeline(options, context);
  if (options.spec.ranks == 1)
    return Error{fmt::format("{}: expected several ranks. Add --ranks N.",
                             options.hosts.empty() ? "--ranks-as " + options.ranksAs : "--hosts " + options.hosts),
                 ErrorKind::Usage};
  if (wantsMpi) return startUnderMpi(options.spec.ranks, options.hosts, context.err);
  return superviseRanks(options.spec.ranks, context.err);
}

void addProcessOptions(CLI::App& verb, RunOptions& options) {
  verb.add_option(
          "--ranks-as", options.ranksAs,
          "Run ranks as threads (default) or as processes, or start them with mpirun (mpi). Not needed if mpirun, "
          "srun or torchrun start fuseline: then each process is one rank")
      ->type_name("KIND")
      ->check(CLI::IsMember({"threads", "processes", "mpi"}));
  verb.add_option("--hosts", options.hosts, "Hosts on which mpirun starts the ranks, each with its number of ranks")
      ->type_name("HOST[:N],...");
  verb.add_option("--rank-timeout", options.rankTimeout,
                  "End the run if a rank has been missing in a collective for this long (default: 50 times the longest "
                  "wait so far, at least 30 s; 120 s for the first collective)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 86400.0))
      ->check([](const std::string& text) {
        return std::string(text.find_first_of("nN") == std::string::npos ? "" : "expected a number");
      });
}

void addVariantsOption(CLI::App& verb, RunOptions& options) {
  verb.add_option("--variants", options.variants, "Plans to run: unfused, fused, or unfused,fused (default: both)")
      ->allow_extra_args(false)
      ->delimiter(',')
      ->check(CLI::IsMember({"unfused", "fused"}));
}

void addRunFiles(CLI::App& verb, RunOptions& options) {
  verb.add_option("-o,--output", options.recordFile, "Write a run file")->type_name("RUN.fuserun");
  verb.add_flag("--force", options.replaces, "Overwrite existing files of -o and --captured");
  verb.add_option("--note", options.note, "Note stored in the run file and shown in comparisons")->type_name("TEXT");
  verb.add_option("--tensors", options.tensorsFile,
                  "Tensors to read: inputs, output gradients, parameters, main_grad buffers, quantizer and optimizer "
                  "state. A file, a folder of files, or a folder of shards")
      ->type_name("IN.safetensors");
  verb.add_option("--dump", options.dumpFile, "Run again and write every tensor")->type_name("OUT.safetensors");
  CLI::Option* const save =
      verb.add_option("--save", options.stateFile,
                      "Write parameters, main_grad buffers, quantizer states and the optimizer's state, for --tensors: "
                      "whole tensors in a file, or the shards of each rank in a folder")
          ->type_name("STATE.safetensors|FOLDER/");
  verb.add_flag("--original-names", options.savesModelNames,
                "With --save: write parameters with the names and in the order of the original model's files, so that "
                "Hugging Face transformers loads them: in a file, or in a folder, there in shards of at most 5 GB")
      ->needs(save);
  verb.add_flag("--quiet", options.isQuiet, "Print no table and no progress");
  verb.add_option("--fail-if", options.gates,
                  "Exit with code 5 if METRIC>LIMIT, or if a result has NaN. Metrics: error (fused against unfused), "
                  "float-error (unfused against "
                  "float32). Limits: tolerance (that of each tensor), or a percentage such as 0.5%")
      ->type_name("GATE")
      ->allow_extra_args(false);
  // A flag that is bound to an optional gives it a value before anything is parsed (CLI11 2.1).
  verb.add_flag_callback(
      "--numerics", [&options] { options.wantsNumerics = true; },
      "Also report the quantization error of every tensor (default when several recipes are compared)");
  verb.add_flag_callback(
      "--no-numerics", [&options] { options.wantsNumerics = false; },
      "Do not report quantization errors, even for several recipes");
}

void addPredictionOptions(CLI::App& verb, RunOptions& options) {
  CLI::Option* const ranks = verb.add_option("--predict-ranks", options.predictedRanks,
                                             "Predict the time for these numbers of ranks: compute is measured, "
                                             "communication is modeled from the link")
                                 ->type_name("N,...")
                                 ->delimiter(',')
                                 ->allow_extra_args(false)
                                 ->check(CLI::Range(1, 64));
  verb.add_flag("--predict-layers", options.predictsLayers,
                "Run each distinct layer of a model once, and estimate the time of the whole model")
      ->excludes(ranks);
  verb.add_option("--link", options.link,
                  "Link between the predicted ranks: nvlink4, pcie5, or latency and bandwidth: 5us,100GB/s; on the "
                  "CPU also the memory bandwidth of sums: 5us,10GB/s,20GB/s")
      ->type_name("NAME|LATENCY,BANDWIDTH");
}

Json runSchema() {
  const Json one = schema::object({{"record", fieldSchema<RunRecord>()},
                                   {"comparison", comparisonSchema()},
                                   {"numerics", schema::orNull(fieldSchema<NumericsReport>())},
                                   {"captured", fieldSchema<std::vector<TensorSummary>>()},
                                   {"gates", gatesSchema()}});
  return {
      {"oneOf", Json::array({one, matrixSchema(), capturableSchema(), predictionSchema(), layerPredictionSchema()})}};
}

}  // namespace run_parts
}  // namespace

void addRunVerb(CLI::App& app, Context& context) {
  using namespace run_parts;
  const auto options = std::make_shared<RunOptions>();
  CLI::App* verb =
      addVerb(app, context, "run",
              "Measure a pipeline unfused and fused, step by step; --recipe all, or a list of names, compares recipes.",
              options, runAnywhere, runSchema);
  addFileOptions(*verb, *options);
  addFusionOptions(*verb, *options);
  verb->get_option("--device")->description("Device to measure on: cpu, reference or cuda[:N]");
  verb->get_option("--recipe")
      ->description(
          "Quantization recipe, or several to compare: all, or a list such as none,mxfp8. The beginning of a name is "
          "enough; `fuseline recipes` lists them (default: that of the pipeline file)");
  addVariantsOption(*verb, *options);
  addSpecOptions(*verb, options->spec, SpecGroup::Measuring);
  addSpecOptions(*verb, options->spec, SpecGroup::Ranks);
  addProcessOptions(*verb, *options);
  addPredictionOptions(*verb, *options);
  addSpecOptions(*verb, options->spec, SpecGroup::Peaks);
  addRunFiles(*verb, *options);
  addCaptureOptions(*verb, options->capture);
  addOnOption(*verb, options->on,
              "Run on another machine over ssh: a host of ~/.ssh/config, or user@host:port. Files are read and "
              "written on this machine");
}

}  // namespace fuseline::cli
