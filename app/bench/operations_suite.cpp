// Suite "ops" of fuseline-bench: every basic op alone, forward and backward, as a share of the peaks measured in the
// same run; on a GPU also what moves data in layers, fused and quantized.
// SPDX-License-Identifier: Apache-2.0
#include "app/bench/json_lines.h"
#include "app/bench/operation_cases.h"
#include "app/bench/suites.h"
#include "app/cli/interrupt.h"
#include "app/cli/pass_lines.h"
#include "app/cli/stat_cells.h"
#include "app/cli/suite_run.h"
#include "app/cli/table.h"
#include "app/cli/terminal.h"
#include "core/ops/catalog.h"
#include "core/profile/roofline.h"
#include "core/runtime/pipeline_run.h"
#include "core/support/output_schema.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {

/// On a CPU, where there is a reason to look for below it.
constexpr double kCpuShare = 0.5;
constexpr const char* kAllLayers = "layers";

struct OperationRow {
  OperationCase what;
  StepRecord step;
  SampleStats time;
  double share = 0.0;
  double wantedShare = 0.0;
  std::string reason;  // of a share below it
};

struct OperationResult {
  OperationCase what;
  std::vector<StepRecord> steps;
  std::string problem;  // why it could not be measured
};

/// "rmsnorm-linear, DelayedScaling"; "RMSNorm, N = 5120" where it is not as wide as others
std::string titleOf(const OperationCase& what) {
  if (what.cols != OperationCase().cols) return fmt::format("{}, N = {}", what.name, what.cols);
  return what.recipe.empty() ? what.name : what.name + ", " + what.recipe;
}

bool isOnCpu(const Backend& backend) { return backend.device().id == "cpu"; }

/// For --only.
bool isNamed(const OperationCase& what, const std::string& name) {
  return name == what.name || (name == kAllLayers && !what.operation);
}

/// Formats are emulated on a CPU, so that layers are measured there on request only.
std::vector<OperationCase> casesOf(const BenchOptions& options, bool isCpu) {
  std::vector<OperationCase> cases = operationCases();
  const std::vector<OperationCase> layers = layerCases();
  if (!isCpu || !options.only.empty()) cases.insert(cases.end(), layers.begin(), layers.end());
  if (!options.only.empty())
    std::erase_if(cases, [&](const OperationCase& each) { return !isNamed(each, options.only); });
  return cases;
}

OperationSizes sizesFor(const BenchOptions& options, bool isCpu) {
  if (options.isQuick) return OperationSizes::Quick;
  return isCpu ? OperationSizes::Cpu : OperationSizes::Gpu;
}

Result<RunRecord> measureCase(const OperationCase& what, OperationSizes sizes, const PipelineRunOptions& options,
                              const Context& context, const std::stop_token& cancel) {
  Result<std::unique_ptr<PipelineRun>> run =
      PipelineRun::prepare(documentFor(what, sizes), what.name, options, context.registry);
  if (!run) return run.error();
  return (*run)->measure({}, cancel);
}

OperationResult resultOf(const OperationCase& what, const RunRecord& record) {
  OperationResult result{.what = what};
  for (const VariantRecord& variant : record.variants)
    std::ranges::copy_if(variant.steps, std::back_inserter(result.steps),
                         [&](const StepRecord& step) { return isMeasured(what, variant.name, step); });
  return result;
}

using KeepOperationResult = std::function<Result<void>(const OperationResult&)>;

SuiteRun<OperationResult> measureCases(const BenchOptions& options, const Backend& backend,
                                       const KeepOperationResult& keep, const Context& context,
                                       const std::stop_token& cancel) {
  const OperationSizes sizes = sizesFor(options, isOnCpu(backend));
  ProgressBar bar(true);
  const SuiteSteps<OperationCase, OperationResult> steps{
      .name = [](const OperationCase& what) { return titleOf(what) + " " + what.dtype; },
      .measure = [&](const OperationCase& what) -> Result<OperationResult> {
        PipelineRunOptions how = optionsFor(what, backend.device().id, sizes);
        how.settings.startsCold = options.startsCold;
        const Result<RunRecord> record = measureCase(what, sizes, how, context, cancel);
        if (!record) return record.error();
        return resultOf(what, *record);
      },
      .refuse = [](const OperationCase& what,
                   const std::string& reason) { return OperationResult{.what = what, .problem = reason}; },
      .keep = keep,
      .isDeviceLost = [&] { return backend.isLost(); },
      .show = [&](const std::string& name, int done, int total) { bar.show(name, done, total); }};
  return runSuite(casesOf(options, isOnCpu(backend)), steps, cancel);
}

OperationRow rowOf(const OperationCase& what, const StepRecord& step, const DevicePeaks& peaks, bool isCpu) {
  OperationRow row{.what = what, .step = step, .time = summarize(step.samplesNs)};
  if (step.isView) return row;
  const double leastNs = leastTimeNs({workOf(step)}, peaks);
  const bool isMemoryBound = leastNs <= static_cast<double>(step.bytes) / peaks.copyGBps;
  row.share = leastNs / row.time.median;
  row.wantedShare = isCpu ? kCpuShare : wantedShare(step, isMemoryBound);
  return row;
}

std::vector<OperationRow> rowsOf(const std::vector<OperationResult>& results, const DevicePeaks& peaks, bool isCpu) {
  std::vector<OperationRow> rows;
  for (const OperationResult& result : results)
    for (const StepRecord& step : result.steps) rows.push_back(rowOf(result.what, step, peaks, isCpu));
  return rows;
}

// ---- why a share is low: the same step on tensors that stay in the cache

bool isPoor(const OperationRow& row) { return !row.step.isView && row.share < row.wantedShare; }

double nsPerByte(const StepRecord& step) {
  return summarize(step.samplesNs).median / static_cast<double>(std::max<std::int64_t>(step.bytes, 1));
}

/// In the cache a step takes `share` of its time.
std::string reasonOf(double share) {
  if (share >= 1.0) return "compute-bound: no faster with its data in the cache";
  return fmt::format("{:.0f} % of the time is compute (measured with its data in the cache), the rest is memory",
                     100.0 * share);
}

/// Fills in the reasons of the poor rows of ops on the CPU. Rows of one case follow each other, a row a step.
Result<void> explainPoorRows(std::vector<OperationRow>& rows, const Context& context, const std::stop_token& cancel) {
  for (std::size_t first = 0; first < rows.size();) {
    std::size_t last = first;
    while (last < rows.size() && rows[last].what == rows[first].what) ++last;
    const std::span<OperationRow> group(&rows[first], last - first);
    first = last;
    if (!group.front().what.operation || std::ranges::none_of(group, isPoor)) continue;
    const OperationCase& what = group.front().what;
    const PipelineRunOptions how = optionsFor(what, "cpu", OperationSizes::Quick);
    const Result<RunRecord> record = measureCase(what, OperationSizes::Quick, how, context, cancel);
    if (!record) return record.error();
    for (std::size_t i = 0; i < group.size(); ++i)
      if (isPoor(group[i]))
        group[i].reason = reasonOf(nsPerByte(record->variants.front().steps[i]) / nsPerByte(group[i].step));
  }
  return {};
}

void printReasons(const std::vector<OperationRow>& rows, Context& context) {
  for (const OperationRow& row : rows)
    if (!row.reason.empty())
      context.out << fmt::format("! {} {} {}: {}.\n", titleOf(row.what), row.what.dtype, row.step.phase, row.reason);
}

/// "forward"; of a layer's step also which it is, and what it makes besides.
std::string labelOf(const OperationRow& row) {
  std::string label = "  " + row.step.phase;
  if (!row.what.operation) label += " " + row.step.name;
  for (const std::string& absorbed : row.step.absorbs) label += " + " + absorbed;
  return label;
}

void addRow(Table& table, const OperationRow& row) {
  if (row.step.isView) {
    table.addRow({labelOf(row), row.what.dtype, "view", "", "", "", "", ""});
    return;
  }
  table.addRow({labelOf(row), row.what.dtype, fmt::format("{:.3f}", row.time.median / 1e6), spreadText(row.time),
                fmt::format("{}", row.time.count),
                fmt::format("{:.1f}", static_cast<double>(row.step.bytes) / row.time.median),
                fmt::format("{:.0f}", static_cast<double>(row.step.flops) / row.time.median),
                fmt::format("{:.0f} %{}", 100.0 * row.share, isPoor(row) ? " !" : "")});
}

std::string markText(bool isCpu) {
  if (isCpu) return "! is below half.";
  return "! marks a step below the target \nof GPUs: 85 % of the limit for data movement, 75 % with quantized outputs, "
         "90 % for GEMMs.";
}

void printTable(const std::vector<OperationRow>& rows, const DevicePeaks& peaks, const Backend& backend,
                bool startsCold, Context& context) {
  const bool isCpu = isOnCpu(backend);
  context.out << peaksText(peaks, backend.device().name) << "\n\n";
  Table table(
      {{"op", Align::Left}, {"dtype", Align::Left}, {"ms"}, {"± %"}, {"n"}, {"GB/s"}, {"GFLOP/s"}, {"of limit"}});
  std::string title;
  for (const OperationRow& row : rows) {
    if (titleOf(row.what) != title) table.addHeading(titleOf(row.what));
    title = titleOf(row.what);
    addRow(table, row);
  }
  context.out << table.toString(context.hasColour);
  context.out << "\nof limit: roofline limit (from the measured peaks) / time. Bytes are the minimum traffic; "
              << markText(isCpu) << "\n"
              << (startsCold ? "Caches were filled with other data before every run.\n" : "");
  printReasons(rows, context);
}

Json toJson(const OperationRow& row) {
  return {{"op", row.what.name},        {"dtype", row.what.dtype},
          {"recipe", row.what.recipe},  {"step", row.step.name},
          {"phase", row.step.phase},    {"isView", row.step.isView},
          {"rounds", row.time.count},   {"medianNs", row.time.median},
          {"bytes", row.step.bytes},    {"flops", row.step.flops},
          {"rooflineShare", row.share}, {"spreadPercent", row.time.spreadPercent()},
          {"reason", row.reason},       {"meets", row.step.isView ? Json() : Json(!isPoor(row))},
          {"N", row.what.cols}};
}

SuiteRun<OperationResult> measureIntoLines(const BenchOptions& options, const Backend& backend,
                                           const DevicePeaks& peaks, JsonLines& lines, const Context& context,
                                           const std::stop_token& cancel) {
  lines.setHead(suiteHead(options, backend, peaks));
  const KeepOperationResult keep = [&](const OperationResult& result) -> Result<void> {
    for (const OperationRow& row : rowsOf({result}, peaks, isOnCpu(backend)))
      if (Result<void> written = lines.write(toJson(row)); !written) return written;
    return {};
  };
  return measureCases(options, backend, keep, context, cancel);
}

/// Empty: all.
Result<void> checkOnly(const std::string& name) {
  const std::vector<OperationCase> layers = layerCases();
  if (std::ranges::any_of(layers, [&](const OperationCase& each) { return isNamed(each, name); })) return {};
  const FusibleOperation* const operation = builtinOperations().find(name);
  if (name.empty() || (operation && !operation->isComposite())) return {};
  if (operation)
    return Error{fmt::format("ops: {} is a composite op; expected a basic op. `fuseline ops` lists them.", name),
                 ErrorKind::Usage};
  const std::string near = builtinOperations().nearestName(name);
  return Error{fmt::format("ops: there is no op {}{}", name,
                           near.empty() ? "; `fuseline ops` lists them." : fmt::format("; did you mean {}?", near)),
               ErrorKind::Usage};
}

}  // namespace

Json operationBenchRow() {
  return schema::object(
      {{"op", schema::text("The basic op, or the layer.")},
       {"N", schema::integer("Number of columns.")},
       {"dtype", schema::choice({"f32", "bf16"})},
       {"recipe", schema::text("Recipe of a layer.")},
       {"step", schema::text("Name of the step in the plan.")},
       {"phase", schema::choice({"forward", "backward"})},
       {"isView", schema::flag("Only a view: no kernel runs.")},
       {"rounds", schema::integer("Number of measured rounds.")},
       {"medianNs", schema::number("Median time of the step.")},
       {"spreadPercent", schema::number("Half the interquartile range / median.")},
       {"bytes", schema::integer("Minimum memory traffic.")},
       {"flops", schema::integer("Floating-point operations of the step.")},
       {"rooflineShare", schema::number("Roofline limit (from the measured peaks) / time.")},
       {"reason", schema::text("Reason for a share below one half; else empty.")},
       {"meets", schema::orNull(schema::flag("Target share of the limit: 0.5; on a GPU 0.85, with quantized outputs "
                                             "0.75, for GEMMs 0.9. Null: a view."))}});
}

Result<int> benchOperations(const BenchOptions& options, Context& context) {
  if (Result<void> known = checkOnly(options.only); !known) return known.error();
  const InterruptWatch interrupt;  // before any thread of a backend exists, so that all inherit the blocked signals
  const Result<std::shared_ptr<Backend>> backend =
      context.registry.open(options.device.empty() ? "cpu" : options.device);
  if (!backend) return backend.error();
  Result<JsonLines> lines = JsonLines::open(options.linesFile, options.replaces);
  if (!lines) return lines.error();
  const auto measured = measureWithPeaks<SuiteRun<OperationResult>>(**backend, [&](const DevicePeaks& peaks) {
    return measureIntoLines(options, **backend, peaks, *lines, context, interrupt.token());
  });
  if (!measured) return measured.error();
  const SuiteRun<OperationResult>& run = measured->result;
  const bool isCpu = isOnCpu(**backend);
  std::vector<OperationRow> rows = rowsOf(run.outcomes, measured->peaks, isCpu);
  if (!options.isQuick && isCpu && run.ended.empty())
    if (Result<void> explained = explainPoorRows(rows, context, interrupt.token()); !explained)
      return explained.error();
  for (const OperationResult& result : run.outcomes)
    if (!result.problem.empty())
      context.err << fmt::format("not measured: {}: {}\n", titleOf(result.what), result.problem);
  if (!options.asJson) {
    printTable(rows, measured->peaks, **backend, options.startsCold, context);
    return run.exitCode();
  }
  Json list = Json::array();
  for (const OperationRow& row : rows) list.push_back(toJson(row));
  printSuite(options, **backend, measured->peaks, std::move(list), context);
  return run.exitCode();
}

}  // namespace fuseline::cli
