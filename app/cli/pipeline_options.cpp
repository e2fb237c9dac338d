// Options to settings, settings to an analysed pipeline.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/pipeline_options.h"

#include "core/export/onnx/onnx_import.h"
#include "core/graph/instances.h"
#include "core/ops/external.h"
#include "core/profile/measured_gains.h"
#include "core/profile/run_file.h"
#include "core/quant/small_layers.h"
#include "core/runtime/pipeline_run.h"
#include "core/support/json_fields.h"
#include "core/support/text.h"
#include "core/support/visible_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline::cli {

namespace {

Error usageError(std::string message) { return {std::move(message), ErrorKind::Usage}; }

Result<std::pair<std::string, std::int64_t>> parseSymbol(const std::string& text) {
  const std::size_t equals = text.find('=');
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  if (equals != std::string::npos && equals > 0) {
    const auto [stop, problem] = std::from_chars(text.data() + equals + 1, end, value);
    if (problem == std::errc() && stop == end) return std::pair(text.substr(0, equals), value);
  }
  return usageError(fmt::format("--set {}: expected SYMBOL=INTEGER, as in --set M=1024.", text));
}

Result<std::pair<std::string, std::string>> parseRecipeField(const PipelineOptions& options, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return usageError(fmt::format("--recipe-set {}: expected KEY=VALUE, as in --recipe-set margin=2.", text));
  if (options.recipe.empty())
    return usageError(fmt::format("--recipe-set {}: name the recipe, too, with --recipe NAME.", text));
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

/// What tensor cores of an architecture can do; a device that runs the pipeline asks its library.
Result<void> checkArchitecture(const PipelineOptions& options, const std::optional<Recipe>& recipe) {
  if (!recipe || !isPlannedArchitecture(options.device)) return {};
  const ComputeCapability capability = *parseCapability(options.device);
  const Verdict verdict = options.emulates ? fieldsFit(*recipe, capability) : supports(*recipe, capability);
  return verdict ? Result<void>()
                 : Error{fmt::format("--device {}: {}", options.device, verdict.reason()), ErrorKind::NoDevice};
}

std::string recipeNames() {
  std::vector<std::string> names;
  for (const RecipeDefinition& recipe : builtinRecipes()) names.push_back(recipe.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<void> checkSymbols(const PipelineDocument& document, const RunSettings& settings) {
  std::vector<std::string> known;
  for (const auto& [name, value] : document.symbols().items()) known.push_back(name);
  for (const auto& [name, value] : settings.symbols)
    if (std::ranges::count(known, name) == 0)
      return usageError(fmt::format("--set {}={}: the pipeline has no symbol {}. It has: {}.", name, value, name,
                                    known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
  return {};
}

/// What a file says may have outlived its op; what is typed should mean something.
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

/// Of the command line, else of the file.
bool hasTeRules(const std::string& rules, const PipelineDocument& document) {
  const Json& own = document.fusion();
  return rules.empty() ? own.is_object() && own.value("rules", Json()) == "te" : rules == "te";
}

Result<Device> deviceFor(const std::string& name, const BackendRegistry& registry) {
  if (isPlannedArchitecture(name))
    return Device{plannedCapabilities(registry.capabilities("cuda")), parseCapability(name)};
  Result<std::shared_ptr<Backend>> backend = registry.open(name);
  if (!backend)
    return Error{fmt::format("{} To plan for one that is not here: fuse and explain with --device and one of {}.",
                             backend.error().message, fmt::join(plannedArchitectures(), ", ")),
                 ErrorKind::NoDevice};
  return Device{capabilitiesOf(*backend), parseCapability((*backend)->device().architecture)};
}

Result<RunRecord> readRun(const std::string& path) {
  Result<RunRecord> run = loadRunRecord(path);
  if (!run) return Error{fmt::format("--measured: {}", run.error().message)};
  return run;
}

/// A figure holds for what was measured: the same ops with the same sizes on the same device.
Result<GainModel> readGains(const std::string& path, const Json& pipeline, const RunSettings& settings,
                            const Json& recipe) {
  const Result<RunRecord> run = readRun(path);
  if (!run) return run.error();
  if (const Verdict same = measuredSame(*run, pipeline, settings, recipe); !same)
    return Error{
        fmt::format("--measured {}: {} Measure again: fuseline run FILE -o RUN.fuserun.", path, same.reason())};
  return gainsOf(*run, std::filesystem::path(path).filename().string());
}

Result<GainModel> measuredGains(const PipelineOptions& options, const PipelineDocument& document,
                                const RunSettings& settings, const Json& recipe) {
  GainModel gains;
  if (options.measuredFiles.empty()) return gains;
  const Result<Json> pipeline = parseJson(serialize(document));
  if (!pipeline) return pipeline.error();
  for (const std::string& path : options.measuredFiles) {
    Result<GainModel> more = readGains(path, *pipeline, settings, recipe);
    if (!more) return more.error();
    merge(gains, std::move(*more));
  }
  return gains;
}

/// What is given on the command line goes before what runs say about the device.
Result<GainModel> gainModel(const PipelineOptions& options, const PipelineDocument& document,
                            const RunSettings& settings, const Json& recipe) {
  Result<GainModel> gains = measuredGains(options, document, settings, recipe);
  if (gains && options.bandwidthGBps > 0.0)
    gains->device = {.bandwidthBytesPerSecond = options.bandwidthGBps * 1e9,
                     .launchSeconds = options.launchUs * 1e-6,
                     .source = "given with --bandwidth and --launch"};
  return gains;
}

}  // namespace

bool isPlannedArchitecture(std::string_view device) { return std::ranges::count(plannedArchitectures(), device) > 0; }

void addFileOptions(CLI::App& verb, PipelineOptions& options) {
  verb.add_option("FILE", options.file, "The pipeline, *.fuseline")->required();
  addReadingOptions(verb, options);
}

void addReadingOptions(CLI::App& verb, PipelineOptions& options) {
  verb.add_option("--set", options.symbols, "Replaces the value of a symbol")
      ->type_name("SYMBOL=VALUE")
      ->allow_extra_args(false);
  verb.add_option("--pass", options.pass, "forward, or train: forward and backward")
      ->check(CLI::IsMember({"forward", "train"}))
      ->capture_default_str();
  verb.add_flag("--json", options.asJson, "Machine-readable output");
}

void addFusionOptions(CLI::App& verb, PipelineOptions& options) {
  verb.add_option("--device", options.device,
                  fmt::format("cpu, reference, cuda[:N], or an architecture to plan for: {}",
                              fmt::join(plannedArchitectures(), ", ")))
      ->capture_default_str();
  verb.add_option("--recipe", options.recipe,
                  fmt::format("The quantization recipe: {}; without it the pipeline file decides", recipeNames()));
  verb.add_option("--recipe-set", options.recipeSettings, "A setting of the recipe")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  verb.add_flag(
      "--emulate", options.emulates,
      "Accepts a recipe that the GPU does not multiply natively: its GEMMs read the quantized values decoded, "
      "in high precision");
  verb.add_option("--rules", options.rules, "The rule book: te or all; without it the pipeline file decides")
      ->check(CLI::IsMember({"te", "all"}));
  verb.add_option("--without", options.switches.without, "Switches a fusion off, everywhere or at one op")
      ->type_name("RULE[@OP]")
      ->allow_extra_args(false);
  verb.add_option("--with", options.switches.with,
                  "Asks for a fusion that has a price, or that others would take the ops from")
      ->type_name("RULE[@OP]")
      ->allow_extra_args(false);
  verb.add_option("--measured", options.measuredFiles,
                  "A run of this pipeline: its figures decide between fusions before any prediction")
      ->type_name("RUN.fuserun")
      ->allow_extra_args(false);
  CLI::Option* bandwidth =
      verb.add_option("--bandwidth", options.bandwidthGBps, "The device's memory bandwidth, measured: predicts times")
          ->type_name("GB/s")
          ->check(numberThat("above 0", [](double value) { return value > 0.0; }));
  verb.add_option("--launch", options.launchUs, "What one launch costs on the device, measured")
      ->type_name("US")
      ->check(numberThat("of 0 or more", [](double value) { return value >= 0.0; }))
      ->needs(bandwidth);
}

void addRanksOption(CLI::App& verb, PipelineOptions& options) {
  verb.add_option("--ranks", options.ranks,
                  "Plans fusions for so many tensor-parallel ranks; sizes stay those of the whole layers")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
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

Result<RunSettings> settingsOf(const PipelineOptions& options) {
  RunSettings settings{
      .device = options.device, .pass = options.pass, .rules = options.rules, .recipe = options.recipe};
  settings.emulates = options.emulates;
  for (const std::string& text : options.recipeSettings) {
    Result<std::pair<std::string, std::string>> field = parseRecipeField(options, text);
    if (!field) return field.error();
    settings.recipeFields.push_back(std::move(*field));
  }
  for (const std::string& text : options.symbols) {
    Result<std::pair<std::string, std::int64_t>> symbol = parseSymbol(text);
    if (!symbol) return symbol.error();
    settings.symbols.push_back(std::move(*symbol));
  }
  return settings;
}

Result<OpenedPipeline> inspectPipeline(const PipelineOptions& options, const BackendRegistry& registry) {
  Result<RunSettings> settings = settingsOf(options);
  if (!settings) return settings.error();
  Result<Device> device = deviceFor(options.device, registry);
  if (!device) return device.error();
  Result<LoadedDocument> loaded = loadOrImportDocument(options.file);
  if (!loaded) return loaded.error();
  if (!loaded->isUnreadable)
    if (Result<void> symbols = checkSymbols(loaded->document, *settings); !symbols) return symbols.error();
  // With TransformerEngine's rules an architecture is planned with its kernels, whatever those of this program are.
  if (isPlannedArchitecture(options.device) && hasTeRules(options.rules, loaded->document)) device->capabilities = {};
  Result<AnalysisOptions> analysis = analysisOptions(*settings, options.switches, std::move(device->capabilities));
  if (!analysis) return analysis.error();
  analysis->capability = device->capability;
  analysis->ranks = options.ranks;
  settings->recipe = recipeName(loaded->document, analysis->recipe);
  const Json recipe = wholeRecipe(loaded->document, analysis->recipe);
  Result<GainModel> gains = gainModel(options, loaded->document, *settings, recipe);
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
    (void)pipeline.loaded.document.apply(SetSymbol{.name = name, .value = value});
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
  return pipeline;
}

void printNotes(const OpenedPipeline& pipeline, const std::string& file, Context& context) {
  for (const std::string& note : pipeline.loaded.notes) context.err << fmt::format("note: {}\n", visibleText(note));
  for (const Diagnostic& diagnostic : allDiagnostics(pipeline))
    if (diagnostic.severity == Severity::Warning || diagnostic.code == kBypassedCode ||
        diagnostic.code == kExternalCode || diagnostic.code == kSmallLayersCode)
      context.err << toString(diagnostic, file) << '\n';
}

}  // namespace fuseline::cli
