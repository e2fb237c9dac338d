// Suite "gpu" of fuseline-bench: the examples at sizes of real models, under each recipe, fused against unfused,
// replayed and launched step by step in the same rounds.
// SPDX-License-Identifier: Apache-2.0
#include "app/bench/gpu_cases.h"
#include "app/bench/json_lines.h"
#include "app/bench/pair_table.h"
#include "app/bench/suites.h"
#include "app/cli/interrupt.h"
#include "app/cli/output_file.h"
#include "app/cli/pass_lines.h"
#include "app/cli/stat_cells.h"
#include "app/cli/suite_run.h"
#include "app/cli/table.h"
#include "app/cli/terminal.h"
#include "core/profile/roofline.h"
#include "core/profile/run_file.h"
#include "core/profile/stats_json.h"
#include "core/runtime/pipeline_run.h"
#include "core/runtime/quantized_linears.h"
#include "core/support/output_schema.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <utility>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {

/// Measurements of a case, or the reason that there are none.
struct GpuResult {
  GpuCase what;
  RunRecord replayed = {};  // unfused and fused
  RunRecord stepwise = {};  // fused, launched step by step
  std::string reason = {};
  QuantizedLinears linears = {};
};

bool isAskedFor(const GpuCase& what, const BenchOptions& options) {
  if (!options.only.empty()) return what.name().find(options.only) != std::string::npos;
  return options.isAll || what.isDefault;
}

std::vector<GpuCase> casesOf(const BenchOptions& options) {
  std::vector<GpuCase> cases = options.isQuick ? quickGpuCases() : gpuCases();
  std::erase_if(cases, [&](const GpuCase& each) { return !isAskedFor(each, options); });
  return cases;
}

Result<void> checkOnly(const BenchOptions& options) {
  if (!casesOf(options).empty()) return {};
  return Error{
      fmt::format("--only {}: no case name contains it. Names look like {}; `fuseline-bench gpu --list` shows all.",
                  options.only, gpuCases().front().name()),
      ErrorKind::Usage};
}

/// All of them, those that --only names, or with --quick the small ones.
Result<int> listCases(const BenchOptions& options, Context& context) {
  BenchOptions listed = options;
  listed.isAll = true;
  Json list = Json::array();
  Table table({{"case", Align::Left}, {"M"}, {"H"}, {"F"}, {"G"}, {"by default", Align::Left}});
  for (const GpuCase& each : casesOf(listed)) {
    list.push_back({{"name", each.name()}, {"isDefault", each.isDefault}});
    table.addRow({each.name(), fmt::format("{}", each.size.M), fmt::format("{}", each.size.H),
                  fmt::format("{}", each.size.F), each.size.G > 0 ? fmt::format("{}", each.size.G) : "",
                  each.isDefault ? "yes" : ""});
  }
  if (options.asJson)
    printJson(context, {{"suite", "gpu"}, {"cases", list}});
  else
    context.out << table.toString(context.hasColour);
  return 0;
}

PipelineRunOptions optionsFor(const GpuCase& what, const std::string& device, const Json& symbols) {
  PipelineRunOptions options;
  options.settings.device = device;
  options.settings.pass = what.pass;
  options.settings.recipe = what.recipe;
  for (const auto& [symbol, value] :
       {std::pair{"M", what.size.M}, {"H", what.size.H}, {"F", what.size.F}, {"G", what.size.G}})
    if (symbols.contains(symbol)) options.settings.symbols.emplace_back(symbol, value);
  options.policy.budget = std::chrono::duration<double>(1.0);
  return options;
}

/// Passes on a backend that is open, so that the plans of all cases share its compiled programs and chosen algorithms.
class OpenBackend final : public BackendRegistry {
 public:
  OpenBackend(std::string device, std::shared_ptr<Backend> backend, const BackendRegistry& others)
      : m_device(std::move(device)), m_backend(std::move(backend)), m_others(others) {}
  std::vector<DeviceStatus> devices() const override { return m_others.devices(); }
  Capabilities capabilities(std::string_view device) const override { return m_others.capabilities(device); }
  Result<std::shared_ptr<Backend>> open(std::string_view device) const override {
    if (device != m_device) return m_others.open(device);
    return m_backend;
  }

 private:
  std::string m_device;
  std::shared_ptr<Backend> m_backend;
  const BackendRegistry& m_others;
};

Result<GpuResult> measureCase(const GpuCase& what, const std::string& device, const BackendRegistry& registry,
                              const std::stop_token& cancel) {
  Result<LoadedDocument> document = benchDocument(what.pipeline, "bf16");
  if (!document) return document.error();
  PipelineRunOptions options = optionsFor(what, device, document->document.symbols());
  if (Result<void> meant = checkQuantizes(document->document, options.settings); !meant) return meant.error();
  Result<std::unique_ptr<PipelineRun>> replayed = PipelineRun::prepare(*document, what.pipeline, options, registry);
  if (!replayed) return replayed.error();
  options.settings.replays = false;
  options.variants = {"fused"};
  Result<std::unique_ptr<PipelineRun>> stepwise = PipelineRun::prepare(*document, what.pipeline, options, registry);
  if (!stepwise) return stepwise.error();
  const std::array runs = {replayed->get(), stepwise->get()};
  Result<std::vector<RunRecord>> records = PipelineRun::measureTogether(runs, {}, cancel);
  if (!records) return records.error();
  const Analysis& analysis = (*replayed)->analysis();
  return GpuResult{.what = what,
                   .replayed = std::move((*records)[0]),
                   .stepwise = std::move((*records)[1]),
                   .linears = quantizedLinears(analysis)};
}

Result<void> writeRecord(const GpuResult& result, const std::string& folder) {
  if (folder.empty() || !result.reason.empty()) return {};
  return saveRunRecord(result.replayed, std::filesystem::path(folder) / (result.what.name() + ".fuserun"));
}

using KeepGpuResult = std::function<Result<void>(const GpuResult&)>;

/// A case that does not run leaves its reason: no memory, no algorithm, nothing that the recipe quantizes.
SuiteRun<GpuResult> measureCases(const BenchOptions& options, const std::shared_ptr<Backend>& backend,
                                 const std::string& device, const KeepGpuResult& keep, const Context& context,
                                 const std::stop_token& cancel) {
  const OpenBackend registry(device, backend, context.registry);
  ProgressBar bar(true);
  const SuiteSteps<GpuCase, GpuResult> steps{
      .name = &GpuCase::name,
      .measure = [&](const GpuCase& what) { return measureCase(what, device, registry, cancel); },
      .refuse = [](const GpuCase& what,
                   const std::string& reason) { return GpuResult{.what = what, .reason = reason}; },
      .keep = keep,
      .isDeviceLost = [&] { return backend->isLost(); },
      .show = [&](const std::string& name, int done, int total) { bar.show(name, done, total); }};
  return runSuite(casesOf(options), steps, cancel);
}

struct GpuRow {
  SampleStats unfused, fused, stepwise;
  RatioStats speedup;
  RatioStats replayGain;  // step by step over replayed
  double launchNs = 0.0;
  double stepwiseLaunchNs = 0.0;
  double fusedGflops = 0.0;
  double fusedGBps = 0.0;
  double rooflineShare = 0.0;  // the fused plan's least time by the measured peaks, over its time; 0: no peaks
  double ceiling = 0.0;        // the speed-up if both plans took their least time
};

GpuRow rowOf(const GpuResult& result, const DevicePeaks& peaks) {
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
  const double leastNs = leastTimeNs(workOf(fused), peaks);
  if (leastNs <= 0.0) return row;
  row.rooflineShare = leastNs / row.fused.median;
  row.ceiling = leastTimeNs(workOf(unfused), peaks) / leastNs;
  return row;
}

/// Fields that need the device's peaks.
Json orNull(double value) { return value > 0.0 ? Json(value) : Json(); }

Json measuredJson(const GpuResult& result, const DevicePeaks& peaks) {
  const GpuRow row = rowOf(result, peaks);
  return {{"rounds", row.fused.count},
          {"clock", nameOf(result.replayed.settings.timing)},
          {"launchMode", result.replayed.variant("fused")->launching},
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
          {"fusedGBps", row.fusedGBps},
          {"rooflineShare", orNull(row.rooflineShare)},
          {"ceiling", orNull(row.ceiling)},
          {"meetsCeiling", row.ceiling > 0.0 ? Json(isNearCeiling(row.speedup, row.ceiling)) : Json()}};
}

Json toJson(const GpuResult& result, const DevicePeaks& peaks) {
  const GpuCase& what = result.what;
  return {
      {"pipeline", what.pipeline}, {"size", what.size.name},
      {"M", what.size.M},          {"H", what.size.H},
      {"F", what.size.F},          {"G", what.size.G},
      {"recipe", what.recipe},     {"pass", nameOf(what.pass)},
      {"reason", result.reason},   {"measured", result.reason.empty() ? measuredJson(result, peaks) : Json(nullptr)}};
}

/// "1.14x"; marked where the speed-up is not near it.
std::string ceilingText(const GpuRow& row) {
  if (row.ceiling <= 0.0) return "";
  return fmt::format("{:.2f}x{}", row.ceiling, isNearCeiling(row.speedup, row.ceiling) ? "" : " !");
}

std::vector<Cell> cellsOf(const GpuResult& result, const DevicePeaks& peaks) {
  const GpuCase& what = result.what;
  std::vector<Cell> cells = {what.size.name, what.recipe, nameOf(what.pass)};
  if (!result.reason.empty()) {
    cells.emplace_back("does not run", Style::Dim);
    return cells;
  }
  const GpuRow row = rowOf(result, peaks);
  const auto microseconds = [](double ns) { return ns > 0.0 ? fmt::format("{:.1f}", ns / 1e3) : ""; };
  return pairCells(
      std::move(cells), row,
      {medianMs(row.stepwise), microseconds(row.launchNs), microseconds(row.stepwiseLaunchNs),
       fmt::format("{:.1f}", row.fusedGflops / 1e3),
       row.rooflineShare > 0.0 ? fmt::format("{:.0f} %", 100.0 * row.rooflineShare) : "", ceilingText(row)});
}

std::string reasonsOf(const std::vector<GpuResult>& results) {
  std::string reasons;
  for (const GpuResult& result : results) {
    if (const std::string& part = result.linears.reason; !part.empty())
      reasons += fmt::format("{}: {} linears are quantized. {}\n", result.what.name(), result.linears.share(), part);
    if (!result.reason.empty()) reasons += fmt::format("{}: {}\n", result.what.name(), result.reason);
  }
  return reasons.empty() ? reasons : "\n" + reasons;
}

void printTable(const std::vector<GpuResult>& results, const DevicePeaks& peaks, const DeviceInfo& device,
                Context& context) {
  Table table(pairColumns({{"size", Align::Left}, {"recipe", Align::Left}, {"pass", Align::Left}},
                          {{"stepwise ms"}, {"launch us"}, {"stepwise us"}, {"TFLOP/s"}, {"of limit"}, {"ceiling"}}));
  addRowsByPipeline(table, results, [&peaks](const GpuResult& result) { return cellsOf(result, peaks); });
  context.out << device.name << "\n";
  if (peaks.copyGBps > 0.0) context.out << peaksText(peaks, device.name) << "\n";
  context.out << "\n" << table.toString(context.hasColour);
  context.out << "\nMedians of interleaved rounds. stepwise: the fused plan launched step by step. launch and stepwise "
                 "us: host time to\nlaunch everything. ~ marks a speed-up that is not significant. of limit: roofline "
                 "limit of the fused plan / its\ntime. ceiling: speed-up if both plans ran at their roofline "
                 "limits; ! where the measured one is not within 5 % of it.\n"
              << reasonsOf(results);
}

Json gpuSuiteHead(const DeviceInfo& device, const DevicePeaks& peaks) {
  return {{"suite", "gpu"}, {"device", device.name}, {"peaks", peaks.copyGBps > 0.0 ? toJson(peaks) : Json()}};
}

void printResults(const BenchOptions& options, const std::vector<GpuResult>& results, const DevicePeaks& peaks,
                  const DeviceInfo& device, Context& context) {
  if (!options.asJson) return printTable(results, peaks, device, context);
  Json rows = Json::array();
  for (const GpuResult& result : results) rows.push_back(toJson(result, peaks));
  Json suite = gpuSuiteHead(device, peaks);
  suite["rows"] = std::move(rows);
  printJson(context, suite);
}

/// Devices that stand for others have no measured peaks; their cases are measured too.
WithPeaks<SuiteRun<GpuResult>> measureAll(const BenchOptions& options, const std::shared_ptr<Backend>& backend,
                                          const std::string& device, JsonLines& lines, const Context& context,
                                          const std::stop_token& cancel) {
  const auto measure = [&](const DevicePeaks& peaks) {
    lines.setHead(gpuSuiteHead(backend->device(), peaks));
    const KeepGpuResult keep = [&](const GpuResult& result) {
      const Result<void> written = lines.write(toJson(result, peaks));
      return written ? writeRecord(result, options.recordsFolder) : written;
    };
    return measureCases(options, backend, device, keep, context, cancel);
  };
  Result<WithPeaks<SuiteRun<GpuResult>>> measured = measureWithPeaks<SuiteRun<GpuResult>>(*backend, measure);
  return measured ? std::move(*measured) : WithPeaks<SuiteRun<GpuResult>>{.result = measure({})};
}

}  // namespace

Json gpuBenchRow() {
  const Json measured = schema::object(
      {{"rounds", schema::integer("Number of complete rounds.")},
       {"clock", schema::text("Clock of the steps: events or host.")},
       {"launchMode", schema::text("Launch method of the fused plan; empty: the device has only one.")},
       {"linears", schema::integer("Linear layers of the pipeline.")},
       {"quantizedLinears", schema::integer("Linear layers that the recipe quantizes.")},
       {"unfusedMedianNs",
        schema::number("Median time of the unfused plan, replayed as a CUDA graph if the device can.")},
       {"fusedMedianNs", schema::number("Median time of the fused plan, likewise.")},
       {"stepwiseMedianNs", schema::number("Time of the fused plan, launched step by step.")},
       {"speedup", ratioSchema()},
       {"replayGain", ratioSchema()},
       {"launchNs", schema::number("Host time to launch the fused plan; 0: not measured separately.")},
       {"stepwiseLaunchNs", schema::number("Host time to launch the fused plan step by step.")},
       {"fusedGflops", schema::number("Rate of the fused plan, in GFLOP/s.")},
       {"fusedGBps", schema::number("Rate of its minimum traffic, in GB/s.")},
       {"rooflineShare",
        schema::orNull(schema::number("Roofline limit (from the measured peaks) / time of the fused plan."))},
       {"ceiling", schema::orNull(schema::number("Speed-up if both plans ran at their roofline limits."))},
       {"meetsCeiling", schema::orNull(schema::flag("Whether the measured speed-up is within 5 % of the ceiling."))}});
  return schema::object({{"pipeline", schema::text("Name of the template.")},
                         {"size", schema::text("Name of the size, such as 8B.")},
                         {"M", schema::integer("Number of rows.")},
                         {"H", schema::integer("Hidden size.")},
                         {"F", schema::integer("Inner size.")},
                         {"G", schema::integer("Number of groups; 0: none.")},
                         {"recipe", schema::text("Name of the recipe.")},
                         {"pass", schema::choice({"forward", "train"})},
                         {"reason", schema::text("Reason why it cannot run; empty: it can.")},
                         {"measured", schema::orNull(measured)}});
}

Result<int> benchGpu(const BenchOptions& options, Context& context) {
  const InterruptWatch interrupt;
  if (const Result<void> known = checkOnly(options); !known) return known.error();
  if (options.isListed) return listCases(options, context);
  const std::string device = options.device.empty() ? "cuda" : options.device;
  const Result<std::shared_ptr<Backend>> backend = context.registry.open(device);
  if (!backend) return backend.error();
  if (const Result<void> made = makeFolder("--records", options.recordsFolder); !made) return made.error();
  Result<JsonLines> lines = JsonLines::open(options.linesFile, options.replaces);
  if (!lines) return lines.error();
  const auto measured = measureAll(options, *backend, device, *lines, context, interrupt.token());
  printResults(options, measured.result.outcomes, measured.peaks, (*backend)->device(), context);
  return measured.result.exitCode();
}

}  // namespace fuseline::cli
