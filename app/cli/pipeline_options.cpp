// Options to settings, settings to an analysed pipeline.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/pipeline_options.h"

#include "core/edit/apply_edit.h"
#include "core/export/any_document.h"
#include "core/export/model/weight_map.h"
#include "core/lowering/folded_diagnostics.h"
#include "core/ops/external.h"
#include "core/plan/collectives/chunked_collectives.h"
#include "core/profile/measured_gains.h"
#include "core/profile/run_file.h"
#include "core/quant/small_layers.h"
#include "core/runtime/pipeline_run.h"
#include "core/support/text.h"
#include "core/support/visible_text.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline::cli {

namespace {

Error usageError(std::string message) { return {std::move(message), ErrorKind::Usage}; }

/// Recipes that the tensor cores of an architecture multiply; a device that runs the pipeline asks its library.
Result<void> checkArchitecture(const PipelineOptions& options, const std::optional<Recipe>& recipe) {
  if (!recipe || !isPlannedArchitecture(options.spec.device)) return {};
  const ComputeCapability capability = *parseCapability(options.spec.device);
  const Verdict verdict = options.spec.emulates ? fieldsFit(*recipe, capability) : supports(*recipe, capability);
  return verdict ? Result<void>()
                 : Error{fmt::format("--device {}: {}", options.spec.device, verdict.reason()), ErrorKind::NoDevice};
}

Result<void> checkSymbols(const PipelineDocument& document, const RunSpec& settings) {
  for (const auto& [name, value] : settings.symbols)
    if (const Verdict verdict = hasSymbol(document, name); !verdict)
      return usageError(fmt::format("--set {}={}: {}", name, value, verdict.reason()));
  return {};
}

/// A switch in a file may have outlived its op; a switch on the command line must match one.
Result<void> checkSwitches(const RuleSwitches& switches, const Analysis& analysis) {
  if (hasErrors(analysis.lowered.diagnostics)) return {};
  for (const auto& [option, entries] : {std::pair("--without", &switches.without), std::pair("--with", &switches.with)})
    for (const std::string& entry : *entries)
      if (const Verdict verdict = hasItsOp(analysis.graph(), entry); !verdict)
        return usageError(fmt::format("{}: {}", option, verdict.reason()));
  return {};
}

/// CLI11's own ranges spell out the largest double there is.
CLI::Validator numberThat(std::string is, bool (*holds)(double)) {
  const auto check = [is = std::move(is), holds](const std::string& text) {
    double value = 0.0;
    const bool isGood = CLI::detail::lexical_cast(text, value) && std::isfinite(value) && holds(value);
    return isGood ? std::string() : fmt::format("expected a number {}, found {}", is, text);
  };
  return CLI::Validator(check, "");
}

struct Device {
  Capabilities capabilities;
  std::optional<ComputeCapability> capability;
};

Result<Device> deviceFor(const std::string& name, const BackendRegistry& registry) {
  if (isPlannedArchitecture(name))
    return Device{plannedCapabilities(registry.capabilities(name)), parseCapability(name)};
  Result<std::shared_ptr<Backend>> backend = registry.open(name);
  if (!backend)
    return Error{
        backend.error().message + " fuse and explain also plan for GPUs that are not here, as in --device sm_90.",
        ErrorKind::NoDevice};
  return Device{capabilitiesOf(*backend), parseCapability((*backend)->device().architecture)};
}

Result<RunRecord> readRun(const std::string& path) {
  Result<RunRecord> run = loadRunRecord(path);
  if (!run) return Error{fmt::format("--measured: {}", run.error().message)};
  return run;
}

/// A figure holds for what was measured: the same ops with the same sizes on the same device.
Result<GainModel> readGains(const std::string& path, const Json& pipeline, const RunSpec& settings,
                            const Json& recipe) {
  const Result<RunRecord> run = readRun(path);
  if (!run) return run.error();
  if (const Verdict same = measuredSame(*run, pipeline, settings, recipe); !same)
    return Error{
        fmt::format("--measured {}: {} Measure again: fuseline run FILE -o RUN.fuserun.", path, same.reason())};
  return gainsOf(*run, std::filesystem::path(path).filename().string());
}

Result<GainModel> measuredGains(const PipelineOptions& options, const PipelineDocument& document,
                                const RunSpec& settings, const Json& recipe) {
  GainModel gains;
  if (options.measuredFiles.empty()) return gains;
  const Json pipeline = toJson(document);
  for (const std::string& path : options.measuredFiles) {
    Result<GainModel> more = readGains(path, pipeline, settings, recipe);
    if (!more) return more.error();
    merge(gains, std::move(*more));
  }
  return gains;
}

/// What is given on the command line goes before what runs say about the device.
Result<GainModel> gainModel(const PipelineOptions& options, const PipelineDocument& document, const RunSpec& settings,
                            const Json& recipe) {
  Result<GainModel> gains = measuredGains(options, document, settings, recipe);
  if (gains && options.bandwidthGBps > 0.0)
    gains->device = {.bandwidthBytesPerSecond = options.bandwidthGBps * 1e9,
                     .launchSeconds = options.launchUs * 1e-6,
                     .source = "given with --bandwidth and --launch"};
  return gains;
}

}  // namespace

bool isPlannedArchitecture(std::string_view device) { return std::ranges::count(plannedArchitectures(), device) > 0; }

Verdict hasSymbol(const PipelineDocument& document, const std::string& name) {
  std::vector<std::string> known;
  for (const auto& [symbol, value] : document.symbols().items()) known.push_back(symbol);
  if (std::ranges::count(known, name) > 0) return Verdict::yes();
  const bool isOfModel = name == "layers" && !weightTable(document).empty();
  return Verdict::no(fmt::format("the pipeline has no symbol {}. {}It has: {}.", name,
                                 isOfModel ? "Import the config.json again: new files have it. " : "",
                                 known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
}

CLI::Option* addSpecOption(CLI::App& verb, RunSpec& spec, const SpecField& field, std::string help) {
  const std::string name = optionName(field, spec);
  if (help.empty()) help = std::string(name.starts_with("--no-") ? field.offHelp : field.help);
  const auto take = [&spec, &field, name](const std::string& text) {
    if (const Result<void> taken = takeText(field, text, spec); !taken)
      throw CLI::ValidationError(name, taken.error().message);
  };
  if (field.isFlag()) {
    const std::string value = name.starts_with("--no-") ? "off" : "on";
    const auto set = [take, value] { take(value); };
    if (!field.formerOption.empty())
      verb.add_flag_callback(fmt::format("--{}{}", value == "off" ? "no-" : "", field.formerOption), set)->group("");
    return verb.add_flag_callback(name, set, help);
  }
  const auto takeAll = [take](const std::vector<std::string>& texts) { std::ranges::for_each(texts, take); };
  CLI::Option* option = field.repeats() ? verb.add_option_function<std::vector<std::string>>(name, takeAll, help)
                                        : verb.add_option_function<std::string>(name, take, help);
  option->type_name(std::string(field.placeholder));
  if (const std::vector<std::string> texts = textsOf(field, spec); !texts.empty()) option->default_str(texts.front());
  return field.repeats() ? option->allow_extra_args(false) : option;
}

void addSpecOptions(CLI::App& verb, RunSpec& spec, SpecGroup group) {
  for (const SpecField& field : runSpecFields())
    if (field.group == group) addSpecOption(verb, spec, field);
}

void addFileOptions(CLI::App& verb, PipelineOptions& options) {
  verb.add_option("FILE", options.file, "Pipeline (*.fuseline), ONNX model, or config.json of a model")->required();
  addReadingOptions(verb, options);
}

void addReadingOptions(CLI::App& verb, PipelineOptions& options) {
  addSpecOptions(verb, options.spec, SpecGroup::Reading);
  verb.add_flag("--json", options.asJson, "Machine-readable output");
}

void addFusionOptions(CLI::App& verb, PipelineOptions& options) {
  addSpecOptions(verb, options.spec, SpecGroup::Planning);
  verb.add_option("--without", options.switches.without, "Disable a fusion, everywhere or at one op")
      ->type_name("RULE[@OP]")
      ->allow_extra_args(false);
  verb.add_option("--with", options.switches.with,
                  "Request a fusion that is not used by default: one that costs time, or that loses to another with a "
                  "larger gain")
      ->type_name("RULE[@OP]")
      ->allow_extra_args(false);
  verb.add_option("--measured", options.measuredFiles,
                  "Run of this pipeline: choose fusions by its measured gains, and by predictions where it has none")
      ->type_name("RUN.fuserun")
      ->allow_extra_args(false);
  CLI::Option* bandwidth =
      verb.add_option("--bandwidth", options.bandwidthGBps, "Measured memory bandwidth of the device, to predict times")
          ->type_name("GB/s")
          ->check(numberThat("above 0", [](double value) { return value > 0.0; }));
  verb.add_option("--launch", options.launchUs, "Measured time of one launch on the device, to predict times")
      ->type_name("USEC")
      ->check(numberThat("of 0 or more", [](double value) { return value >= 0.0; }))
      ->needs(bandwidth);
}

void addRanksOption(CLI::App& verb, PipelineOptions& options) {
  verb.add_option("--ranks", options.ranks,
                  "Number of tensor-parallel ranks to plan for; sizes in the file are those of the unsharded layers")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
}

void addOneRankOption(CLI::App& verb, PipelineOptions& options) {
  addRanksOption(verb, options);
  verb.get_option("--ranks")->description(
      "Plan the work of one of N tensor-parallel ranks, with its communication; with --rules te, each parallel layer "
      "is one step that includes its collectives");
  addSpecOption(verb, options.spec, runSpecField("chunks"));
  options.plansOneRank = true;
}

void noteChunks(const RunSpec& spec, std::int64_t ranks, const Analysis& analysis, std::ostream& err) {
  if (spec.chunks == 1) return;
  const auto say = [&](const std::string& problem) {
    const std::string chunks = spec.chunks == 0 ? "auto" : std::to_string(spec.chunks);
    err << fmt::format("note: --chunks {}: {}\n", chunks, problem);
  };
  if (ranks == 1) return say("it has no effect on one rank. Add --ranks N.");
  if (!analysis.wholeGraph)
    return say("it has no effect with --rules te, where a layer and its collectives are one step. Use --rules all.");
  if (!spec.overlaps) return say("it has no effect with --no-overlap.");
  if (spec.chunks == 0) return;
  if (const std::string problem = chunkProblem(*analysis.fusedPlan, spec.chunks); !problem.empty()) say(problem);
}

std::vector<NamedFile> filesRead(const PipelineOptions& options) {
  std::vector<NamedFile> files = {{"FILE", options.file}};
  for (const std::string& file : options.measuredFiles) files.emplace_back("--measured", file);
  return files;
}

Result<void> checkEdited(const PipelineOptions& options, const std::string& output, bool replaces) {
  VerbFiles files{.read = filesRead(options), .written = {{"-o", output}}};
  if (options.file.ends_with(".fuseline")) files.read.erase(files.read.begin());
  return checkOutputs(files, replaces);
}

Result<void> checkSpec(const RunSpec& spec) {
  if (spec.recipeFields.empty() || !spec.recipe.empty()) return {};
  const auto& [name, value] = spec.recipeFields.front();
  return usageError(fmt::format("--recipe-set {}={}: the recipe is missing. Add --recipe NAME.", name, value));
}

Result<OpenedPipeline> inspectPipeline(const PipelineOptions& options, const BackendRegistry& registry) {
  RunSpec spec = options.spec;
  if (Result<void> fits = checkSpec(spec); !fits) return fits.error();
  Result<Device> device = deviceFor(spec.device, registry);
  if (!device) return device.error();
  Result<LoadedDocument> loaded = loadOrImportDocument(options.file);
  if (!loaded) return loaded.error();
  if (!loaded->isUnreadable)
    if (Result<void> symbols = checkSymbols(loaded->document, spec); !symbols) return symbols.error();
  // With TransformerEngine's rules an architecture is planned with TransformerEngine's kernels, not with those here.
  if (isPlannedArchitecture(spec.device) && spec.rules.value_or(documentBook(loaded->document)) == RuleBook::Te)
    device->capabilities = {};
  Result<AnalysisOptions> analysis = analysisOptions(spec, options.switches, std::move(device->capabilities));
  if (!analysis) return analysis.error();
  analysis->capability = device->capability;
  analysis->ranks = options.ranks;
  spec.ranks = static_cast<int>(options.ranks);
  const bool isTe = spec.rules.value_or(documentBook(loaded->document)) == RuleBook::Te;
  const bool isOnHost = spec.device == "cpu" || spec.device == "reference";
  if (options.plansOneRank && !isTe) analysis->place = rankPlace(spec, isOnHost);
  spec.recipe = recipeName(loaded->document, analysis->recipe);
  const Json recipe = wholeRecipe(loaded->document, analysis->recipe);
  Result<GainModel> gains = gainModel(options, loaded->document, spec, recipe);
  if (!gains) return gains.error();
  analysis->gains = std::move(*gains);
  OpenedPipeline pipeline{.loaded = std::move(*loaded), .options = std::move(*analysis)};
  pipeline.analysis = analyze(pipeline.loaded.document, pipeline.options, &pipeline.loaded.sourceMap);
  if (Result<void> meant = checkSwitches(options.switches, pipeline.analysis); !meant) return meant.error();
  if (Result<void> fits = checkArchitecture(options, pipeline.analysis.recipe); !fits) return fits.error();
  return pipeline;
}

void keepSymbols(OpenedPipeline& pipeline) {
  for (const auto& [name, value] : std::exchange(pipeline.options.lowering.symbols, {}))
    (void)applyEdit(pipeline.loaded.document, SetSymbol{.name = name, .value = value});
}

std::vector<Diagnostic> allDiagnostics(const OpenedPipeline& pipeline) {
  std::vector<Diagnostic> diagnostics = pipeline.loaded.diagnostics;
  const std::vector<Diagnostic>& lowered = pipeline.analysis.lowered.diagnostics;
  diagnostics.insert(diagnostics.end(), lowered.begin(), lowered.end());
  return foldInstances(pipeline.analysis.graph(), diagnostics);
}

Result<OpenedPipeline> openPipeline(const PipelineOptions& options, Context& context) {
  Result<OpenedPipeline> pipeline = inspectPipeline(options, context.registry);
  if (!pipeline) return pipeline.error();
  const std::vector<Diagnostic> diagnostics = allDiagnostics(*pipeline);
  if (hasErrors(diagnostics))
    return Error{fmt::format("{} cannot be used:\n{}", options.file, errorText(diagnostics, options.file))};
  printNotes(*pipeline, options.file, context);
  if (options.plansOneRank) noteChunks(options.spec, options.ranks, pipeline->analysis, context.err);
  return pipeline;
}

void printNotes(const OpenedPipeline& pipeline, const std::string& file, Context& context) {
  for (const std::string& note : pipeline.loaded.notes) context.err << fmt::format("note: {}\n", visibleText(note));
  for (const Diagnostic& diagnostic : allDiagnostics(pipeline))
    if (diagnostic.severity == Severity::Warning || diagnostic.code == kBypassedCode ||
        diagnostic.code == kExternalCode || diagnostic.code == kSmallLayersCode || diagnostic.code == kAttentionCode)
      context.err << toString(diagnostic, file) << '\n';
}

}  // namespace fuseline::cli
