// Suite "cpu" of fuseline-bench: the examples at three sizes, fused against unfused, with the machine's peaks measured
// in the same run.
// SPDX-License-Identifier: Apache-2.0
#include "app/bench/pair_table.h"
#include "app/bench/suites.h"
#include "app/cli/interrupt.h"
#include "app/cli/stat_cells.h"
#include "app/cli/suite_run.h"
#include "app/cli/table.h"
#include "app/cli/terminal.h"
#include "core/edit/apply_edit.h"
#include "core/profile/roofline.h"
#include "core/runtime/pipeline_run.h"
#include "core/support/output_schema.h"

#include <array>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {

struct BenchSize {
  const char* name;
  std::int64_t M;  // rows
  std::int64_t H;  // hidden size
  std::int64_t F;  // inner size
};

constexpr std::array<BenchSize, 3> kSizes = {BenchSize{"small", 64, 256, 768}, BenchSize{"medium", 256, 512, 1536},
                                             BenchSize{"large", 512, 1024, 2816}};
/// Beyond the caches, where what has no products is bound by memory.
constexpr BenchSize kHuge{"huge", 4096, 4096, 11008};
constexpr const char* kElementwise = "elementwise-chain";
constexpr std::array kPipelines = {"llama-mlp",     "gpt-mlp",    "layernorm-mlp",
                                   "residual-norm", kElementwise, "transformer-stack"};
constexpr std::array<const char*, 2> kDTypes = {"f32", "bf16"};
constexpr std::array kPasses = {ExecutionMode::Inference, ExecutionMode::Training};

/// One line of the suite before it ran.
struct BenchCase {
  std::string pipeline;
  BenchSize size;
  std::string dtype;
  ExecutionMode pass = ExecutionMode::Training;
};

struct BenchResult {
  BenchCase what;
  RunRecord record = {};
  std::string problem = {};  // why it could not be measured
};

struct BenchRow {
  BenchCase what;
  SampleStats unfused;
  SampleStats fused;
  RatioStats speedup;
  double fusedGflops = 0.0;
  double rooflineShare = 0.0;  // the least time by the measured peaks, over the fused plan's time
  double gemmShare = 0.0;      // the GEMMs of the unfused plan, over the peak of their dtype
};

std::vector<BenchSize> sizesOf(const std::string& pipeline, bool isQuick) {
  if (isQuick) return {kSizes.front()};
  std::vector<BenchSize> sizes(kSizes.begin(), kSizes.end());
  if (pipeline == kElementwise) sizes.push_back(kHuge);
  return sizes;
}

std::vector<BenchCase> casesOf(bool isQuick) {
  std::vector<BenchCase> cases;
  for (const char* pipeline : kPipelines)
    for (const BenchSize& size : sizesOf(pipeline, isQuick))
      for (const char* dtype : kDTypes)
        for (const ExecutionMode pass : kPasses) cases.push_back({pipeline, size, dtype, pass});
  return cases;
}

PipelineRunOptions optionsFor(const BenchCase& what, const Json& symbols) {
  PipelineRunOptions options;
  options.settings.pass = what.pass;
  options.settings.symbols = {{"M", what.size.M}, {"H", what.size.H}};
  if (symbols.contains("F")) options.settings.symbols.emplace_back("F", what.size.F);
  options.policy.budget = std::chrono::duration<double>(1.5);
  return options;
}

double flopsOf(const VariantRecord& variant) {
  double flops = 0.0;
  for (const StepRecord& step : variant.steps) flops += static_cast<double>(step.flops);
  return flops;
}

double gemmShareOf(const VariantRecord& unfused, double peak) {
  double flops = 0.0;
  double timeNs = 0.0;
  for (const StepRecord& step : unfused.steps) {
    if (step.kernel != "BasicLinear") continue;
    flops += static_cast<double>(step.flops);
    timeNs += summarize(step.samplesNs).median;
  }
  return timeNs > 0.0 ? flops / timeNs / peak : 0.0;
}

BenchRow rowOf(const BenchResult& result, const DevicePeaks& peaks) {
  const VariantRecord& unfused = *result.record.variant("unfused");
  const VariantRecord& fused = *result.record.variant("fused");
  BenchRow row{.what = result.what,
               .unfused = summarize(unfused.endToEndNs),
               .fused = summarize(fused.endToEndNs),
               .speedup = compareRounds(unfused.endToEndNs, fused.endToEndNs)};
  row.fusedGflops = flopsOf(fused) / row.fused.median;
  row.rooflineShare = leastTimeNs(workOf(fused), peaks) / row.fused.median;
  row.gemmShare = gemmShareOf(unfused, computePeak(peaks, arithmeticNamed(result.what.dtype)).gflops);
  return row;
}

Result<RunRecord> measureCase(const BenchCase& what, const Context& context, const std::stop_token& cancel) {
  Result<LoadedDocument> document = benchDocument(what.pipeline, what.dtype);
  if (!document) return document.error();
  Result<std::unique_ptr<PipelineRun>> run =
      PipelineRun::prepare(*document, what.pipeline, optionsFor(what, document->document.symbols()), context.registry);
  if (!run) return run.error();
  return (*run)->measure({}, cancel);
}

SuiteRun<BenchResult> measureCases(const std::vector<BenchCase>& cases, const Context& context,
                                   const std::stop_token& cancel) {
  ProgressBar bar(true);
  const SuiteSteps<BenchCase, BenchResult> steps{
      .name =
          [](const BenchCase& what) {
            return fmt::format("{} {} {} {}", what.pipeline, what.size.name, what.dtype, nameOf(what.pass));
          },
      .measure = [&](const BenchCase& what) -> Result<BenchResult> {
        Result<RunRecord> record = measureCase(what, context, cancel);
        if (!record) return record.error();
        return BenchResult{.what = what, .record = std::move(*record)};
      },
      .refuse = [](const BenchCase& what,
                   const std::string& reason) { return BenchResult{.what = what, .problem = reason}; },
      .show = [&](const std::string& name, int done, int total) { bar.show(name, done, total); }};
  return runSuite(cases, steps, cancel);
}

struct BenchReport {
  DevicePeaks peaks;
  SuiteRun<BenchResult> run;
  std::vector<BenchRow> rows;
};

Result<BenchReport> measureReport(bool isQuick, Backend& cpu, const Context& context, const std::stop_token& cancel) {
  Result<WithPeaks<SuiteRun<BenchResult>>> measured = measureWithPeaks<SuiteRun<BenchResult>>(
      cpu, [&](const DevicePeaks&) { return measureCases(casesOf(isQuick), context, cancel); });
  if (!measured) return measured.error();
  BenchReport report{.peaks = measured->peaks, .run = std::move(measured->result)};
  for (const BenchResult& result : report.run.outcomes)
    if (result.problem.empty()) report.rows.push_back(rowOf(result, report.peaks));
  return report;
}

Json toJson(const BenchRow& row) {
  return {{"pipeline", row.what.pipeline},
          {"size", row.what.size.name},
          {"M", row.what.size.M},
          {"H", row.what.size.H},
          {"F", row.what.size.F},
          {"dtype", row.what.dtype},
          {"pass", nameOf(row.what.pass)},
          {"rounds", row.fused.count},
          {"unfusedMedianNs", row.unfused.median},
          {"unfusedSpreadPercent", row.unfused.spreadPercent()},
          {"fusedMedianNs", row.fused.median},
          {"fusedSpreadPercent", row.fused.spreadPercent()},
          {"speedup", row.speedup.median},
          {"speedupLow", row.speedup.low},
          {"speedupHigh", row.speedup.high},
          {"fusedGflops", row.fusedGflops},
          {"rooflineShare", row.rooflineShare},
          {"gemmShare", row.gemmShare}};
}

std::vector<Cell> cellsOf(const BenchRow& row) {
  return pairCells({row.what.size.name, row.what.dtype, nameOf(row.what.pass)}, row,
                   {fmt::format("{:.0f}", row.fusedGflops), fmt::format("{:.0f} %", 100.0 * row.rooflineShare),
                    row.gemmShare > 0.0 ? fmt::format("{:.0f} %", 100.0 * row.gemmShare) : ""});
}

void printTable(const BenchReport& report, Context& context) {
  context.out << peaksText(report.peaks, "cpu") << "\n\n";
  Table table(pairColumns({{"size", Align::Left}, {"dtype", Align::Left}, {"pass", Align::Left}},
                          {{"GFLOP/s"}, {"of limit"}, {"GEMM of peak"}}));
  addRowsByPipeline(table, report.rows, cellsOf);
  context.out << table.toString(context.hasColour);
  context.out
      << "\nof limit: roofline limit of the fused steps (from the measured peaks) / their time. GEMM of peak: FLOP/s "
         "of the\nunfused plan's GEMMs / the peak of their dtype. ~ marks a speed-up that is not significant.\n";
}

}  // namespace

Result<LoadedDocument> benchDocument(const std::string& pipeline, const std::string& dtype) {
  const DocumentTemplate* found = findTemplate(pipeline);
  if (!found) return Error{fmt::format("The template {} is missing.", pipeline)};
  LoadedDocument loaded = parseDocument(found->text);
  const std::vector<DocumentInput> inputs = loaded.document.inputs();
  for (DocumentInput input : inputs) {
    input.dtype = dtype;
    if (Result<Edit> applied = applyEdit(loaded.document, ReplaceInput{input.id, input}); !applied)
      return applied.error();
  }
  return loaded;
}

Json pipelineBenchRow() {
  schema::Fields row = {{"pipeline", schema::text("Name of the template.")},
                        {"size", schema::choice({"small", "medium", "large"})},
                        {"M", schema::integer("Number of rows.")},
                        {"H", schema::integer("Hidden size.")},
                        {"F", schema::integer("Inner size.")},
                        {"dtype", schema::choice({"f32", "bf16"})},
                        {"pass", schema::choice({"forward", "train"})},
                        {"rounds", schema::integer("Number of measured rounds.")}};
  for (const char* name : {"unfusedMedianNs", "unfusedSpreadPercent", "fusedMedianNs", "fusedSpreadPercent", "speedup",
                           "speedupLow", "speedupHigh", "fusedGflops", "rooflineShare", "gemmShare"})
    row.emplace_back(name, schema::number("Median end-to-end time."));
  return schema::object(row);
}

Result<int> benchPipelines(const BenchOptions& options, Context& context) {
  const InterruptWatch interrupt;
  const Result<std::shared_ptr<Backend>> cpu = context.registry.open("cpu");
  if (!cpu) return cpu.error();
  const Result<BenchReport> report = measureReport(options.isQuick, **cpu, context, interrupt.token());
  if (!report) return report.error();
  for (const BenchResult& result : report->run.outcomes)
    if (!result.problem.empty())
      context.err << fmt::format("not measured: {} {}: {}\n", result.what.pipeline, result.what.size.name,
                                 result.problem);
  if (!options.asJson) {
    printTable(*report, context);
    return report->run.exitCode();
  }
  Json list = Json::array();
  for (const BenchRow& row : report->rows) list.push_back(toJson(row));
  printSuite(options, **cpu, report->peaks, std::move(list), context);
  return report->run.exitCode();
}

}  // namespace fuseline::cli
