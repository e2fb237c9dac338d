// Suite "gpu" of fuseline bench: the examples at sizes of real models, under each recipe, fused against unfused,
// replayed and launched step by step in the same rounds.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/bench_suites.h"
#include "app/cli/interrupt.h"
#include "app/cli/quantized_linears.h"
#include "app/cli/stat_cells.h"
#include "app/cli/table.h"
#include "app/cli/terminal.h"
#include "core/profile/run_file.h"
#include "core/runtime/pipeline_run.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline::cli {

namespace {

/// M rows, hidden size H, inner size F.
struct GpuSize {
  const char* name;
  std::int64_t M, H, F;
};

/// A decoding step, where the host decides; then an 8B model's layer with a short and a long batch.
constexpr std::array kSizes = {GpuSize{"decode", 16, 4096, 14336}, GpuSize{"short", 2048, 4096, 14336},
                               GpuSize{"long", 8192, 4096, 14336}};
/// What also a CPU runs in a moment: for a look at the suite itself.
constexpr GpuSize kQuick{"quick", 128, 256, 512};
constexpr const char* kElementwise = "elementwise-chain";  // no products, so that recipes change nothing
constexpr std::array kPipelines = {"llama-mlp", "gpt-mlp", "transformer-stack", "residual-norm", kElementwise};
constexpr std::array kRecipes = {"none", "DelayedScaling", "Float8CurrentScaling", "Float8BlockScaling",
                                 "MXFP8BlockScaling"};
constexpr std::array kPasses = {"forward", "train"};

struct GpuCase {
  std::string pipeline;
  GpuSize size;
  std::string recipe;
  std::string pass;

  std::string name() const { return fmt::format("{}_{}_{}_{}", pipeline, size.name, recipe, pass); }
};

/// What a case measured, or why it did not.
struct GpuResult {
  GpuCase what;
  RunRecord replayed = {};  // unfused and fused
  RunRecord stepwise = {};  // fused, launched step by step
  std::string reason = {};
  QuantizedLinears linears = {};
};

std::span<const char* const> recipesOf(const std::string& pipeline) {
  const std::span<const char* const> all = kRecipes;
  return pipeline == kElementwise ? all.first(1) : all;
}

std::vector<GpuCase> casesOf(const BenchOptions& options) {
  const std::vector<GpuSize> sizes = options.isQuick ? std::vector{kQuick} : std::vector(kSizes.begin(), kSizes.end());
  std::vector<GpuCase> cases;
  for (const std::string pipeline : kPipelines)
    for (const GpuSize& size : sizes)
      for (const char* recipe : recipesOf(pipeline))
        for (const char* pass : kPasses) cases.push_back({pipeline, size, recipe, pass});
  std::erase_if(cases, [&](const GpuCase& each) { return each.name().find(options.only) == std::string::npos; });
  return cases;
}

Result<void> checkOnly(const BenchOptions& options) {
  if (!casesOf(options).empty()) return {};
  return Error{fmt::format("--only {}: no case of this suite has that in its name. Names are like {}; there are the "
                           "pipelines {}.",
                           options.only, GpuCase{kPipelines[0], kSizes[1], kRecipes[1], kPasses[1]}.name(),
                           fmt::join(kPipelines, ", ")),
               ErrorKind::Usage};
}

PipelineRunOptions optionsFor(const GpuCase& what, const std::string& device, const Json& symbols) {
  PipelineRunOptions options;
  options.settings.device = device;
  options.settings.pass = what.pass;
  options.settings.recipe = what.recipe;
  for (const auto& [symbol, value] : {std::pair{"M", what.size.M}, {"H", what.size.H}, {"F", what.size.F}})
    if (symbols.contains(symbol)) options.settings.symbols.emplace_back(symbol, value);
  options.policy.budget = std::chrono::duration<double>(1.0);
  return options;
}

Result<GpuResult> measureCase(const GpuCase& what, const std::string& device, const Context& context,
                              const std::stop_token& cancel) {
  Result<LoadedDocument> document = benchDocument(what.pipeline, "bf16");
  if (!document) return document.error();
  PipelineRunOptions options = optionsFor(what, device, document->document.symbols());
  Result<std::unique_ptr<PipelineRun>> replayed =
      PipelineRun::prepare(*document, what.pipeline, options, context.registry);
  if (!replayed) return replayed.error();
  if (const Verdict quantizes = quantizesAnything((*replayed)->analysis()); !quantizes)
    return Error{quantizes.reason(), ErrorKind::RunFailed};
  options.settings.replays = false;
  options.variants = {"fused"};
  Result<std::unique_ptr<PipelineRun>> stepwise =
      PipelineRun::prepare(*document, what.pipeline, options, context.registry);
  if (!stepwise) return stepwise.error();
  const std::array runs = {replayed->get(), stepwise->get()};
  Result<std::vector<RunRecord>> records = PipelineRun::measureTogether(runs, {}, cancel);
  if (!records) return records.error();
  return GpuResult{.what = what,
                   .replayed = std::move((*records)[0]),
                   .stepwise = std::move((*records)[1]),
                   .linears = quantizedLinears((*replayed)->analysis())};
}

/// Before anything is measured: nothing is lost where it cannot be made.
Result<void> makeFolder(const std::string& folder) {
  std::error_code problem;
  if (!folder.empty()) std::filesystem::create_directories(folder, problem);
  if (!problem) return {};
  return Error{fmt::format("--records {}: this folder cannot be made: {}.", folder, problem.message())};
}

Result<void> writeRecord(const GpuResult& result, const std::string& folder) {
  if (folder.empty() || !result.reason.empty()) return {};
  return saveRunRecord(result.replayed, std::filesystem::path(folder) / (result.what.name() + ".fuserun"));
}

/// A case that does not run leaves its reason: no memory, no algorithm, nothing that the recipe quantizes.
Result<std::vector<GpuResult>> measureCases(const BenchOptions& options, const std::string& device,
                                            const Context& context, const std::stop_token& cancel) {
  const std::vector<GpuCase> cases = casesOf(options);
  std::vector<GpuResult> results;
  ProgressBar bar(true);
  for (const GpuCase& what : cases) {
    bar.show(what.name(), static_cast<int>(results.size()), static_cast<int>(cases.size()));
    Result<GpuResult> result = measureCase(what, device, context, cancel);
    if (cancel.stop_requested()) return Error{"The benchmark was cancelled.", ErrorKind::RunFailed};
    results.push_back(result ? std::move(*result) : GpuResult{.what = what, .reason = result.error().message});
    if (Result<void> written = writeRecord(results.back(), options.recordsFolder); !written) return written.error();
  }
  return results;
}

struct GpuRow {
  SampleStats unfused, fused, stepwise;
  RatioStats speedup;
  RatioStats replayGain;  // step by step over replayed
  double launchNs = 0.0;
  double stepwiseLaunchNs = 0.0;
  double fusedGflops = 0.0;
  double fusedGBps = 0.0;
};

GpuRow rowOf(const GpuResult& result) {
  const VariantRecord& unfused = *result.replayed.variant("unfused");
  const VariantRecord& fused = *result.replayed.variant("fused");
  const VariantRecord& stepwise = *result.stepwise.variant("fused");
  GpuRow row{.unfused = summarize(unfused.endToEndNs),
             .fused = summarize(fused.endToEndNs),
             .stepwise = summarize(stepwise.endToEndNs),
             .speedup = compareRounds(unfused.endToEndNs, fused.endToEndNs),
             .replayGain = compareRounds(stepwise.endToEndNs, fused.endToEndNs),
             .launchNs = summarize(fused.launchNs).median,
             .stepwiseLaunchNs = summarize(stepwise.launchNs).median};
  for (const StepRecord& step : fused.steps) {
    row.fusedGflops += static_cast<double>(step.flops) / row.fused.median;
    row.fusedGBps += static_cast<double>(step.bytes) / row.fused.median;
  }
  return row;
}

Json ratioJson(const RatioStats& ratio) { return {{"median", ratio.median}, {"low", ratio.low}, {"high", ratio.high}}; }

Json measuredJson(const GpuResult& result) {
  const GpuRow row = rowOf(result);
  return {{"rounds", row.fused.count},
          {"clock", result.replayed.settings.timing},
          {"launching", result.replayed.variant("fused")->launching},
          {"linears", result.linears.total},
          {"quantizedLinears", result.linears.quantized},
          {"unfusedMedianNs", row.unfused.median},
          {"fusedMedianNs", row.fused.median},
          {"stepwiseMedianNs", row.stepwise.median},
          {"speedup", ratioJson(row.speedup)},
          {"replayGain", ratioJson(row.replayGain)},
          {"launchNs", row.launchNs},
          {"stepwiseLaunchNs", row.stepwiseLaunchNs},
          {"fusedGflops", row.fusedGflops},
          {"fusedGBps", row.fusedGBps}};
}

Json toJson(const GpuResult& result) {
  const GpuCase& what = result.what;
  return {{"pipeline", what.pipeline},
          {"size", what.size.name},
          {"M", what.size.M},
          {"H", what.size.H},
          {"F", what.size.F},
          {"recipe", what.recipe},
          {"pass", what.pass},
          {"reason", result.reason},
          {"measured", result.reason.empty() ? measuredJson(result) : Json(nullptr)}};
}

std::string milliseconds(const SampleStats& stats) { return fmt::format("{:.3f}", stats.median / 1e6); }

void addRow(Table& table, const GpuResult& result) {
  const GpuCase& what = result.what;
  std::vector<Cell> cells = {what.size.name, what.recipe, what.pass};
  if (!result.reason.empty()) {
    cells.emplace_back("does not run", Style::Dim);
    return table.addRow(std::move(cells));
  }
  const GpuRow row = rowOf(result);
  const auto microseconds = [](double ns) { return ns > 0.0 ? fmt::format("{:.1f}", ns / 1e3) : ""; };
  for (Cell cell :
       {Cell(milliseconds(row.unfused)), Cell(spreadText(row.unfused), Style::Dim), Cell(milliseconds(row.fused)),
        Cell(spreadText(row.fused), Style::Dim), Cell(fmt::format("{}", row.fused.count), Style::Dim),
        speedupCell(row.speedup), Cell(milliseconds(row.stepwise)), Cell(microseconds(row.launchNs)),
        Cell(microseconds(row.stepwiseLaunchNs)), Cell(fmt::format("{:.1f}", row.fusedGflops / 1e3)),
        Cell(fmt::format("{:.0f}", row.fusedGBps))})
    cells.push_back(std::move(cell));
  table.addRow(std::move(cells));
}

void printTable(const std::vector<GpuResult>& results, const DeviceInfo& device, Context& context) {
  Table table({{"size", Align::Left},
               {"recipe", Align::Left},
               {"pass", Align::Left},
               {"unfused ms"},
               {"± %"},
               {"fused ms"},
               {"± %"},
               {"n"},
               {"speed-up"},
               {"stepwise ms"},
               {"launch us"},
               {"stepwise us"},
               {"TFLOP/s"},
               {"GB/s"}});
  std::string pipeline;
  std::string reasons;
  for (const GpuResult& result : results) {
    if (result.what.pipeline != pipeline) table.addHeading(result.what.pipeline);
    pipeline = result.what.pipeline;
    addRow(table, result);
    if (const std::string& part = result.linears.reason; !part.empty())
      reasons += fmt::format("{}: {} linears are quantized. {}\n", result.what.name(), result.linears.share(), part);
    if (!result.reason.empty()) reasons += fmt::format("{}: {}\n", result.what.name(), result.reason);
  }
  context.out << device.name << "\n\n" << table.toString(context.hasColour);
  context.out << "\nMedians of rounds that interleave all. stepwise: the fused plan launched step by step. launch and "
                 "\nstepwise us: the host's time until all is launched. TFLOP/s and GB/s of the fused plan, by the "
                 "least \ntraffic that its steps need. ~ marks a speed-up that could be chance.\n";
  if (!reasons.empty()) context.out << "\n" << reasons;
}

}  // namespace

Result<int> benchGpu(const BenchOptions& options, Context& context) {
  const InterruptWatch interrupt;
  if (const Result<void> known = checkOnly(options); !known) return known.error();
  const std::string device = options.device.empty() ? "cuda" : options.device;
  const Result<std::shared_ptr<Backend>> backend = context.registry.open(device);
  if (!backend) return backend.error();
  if (const Result<void> made = makeFolder(options.recordsFolder); !made) return made.error();
  const Result<std::vector<GpuResult>> results = measureCases(options, device, context, interrupt.token());
  if (!results) return results.error();
  if (!options.asJson) {
    printTable(*results, (*backend)->device(), context);
    return 0;
  }
  Json rows = Json::array();
  for (const GpuResult& result : *results) rows.push_back(toJson(result));
  printJson(context, {{"suite", "gpu"}, {"device", (*backend)->device().name}, {"rows", std::move(rows)}});
  return 0;
}

}  // namespace fuseline::cli
