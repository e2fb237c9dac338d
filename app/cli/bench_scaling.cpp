// Suite "scaling" of fuseline bench: how the time of each stage before a run grows with the number of ops. The suite
// writes its pipelines itself: residual blocks of ten basic ops, one after the other. Nothing runs on a device, and all
// stages run on one thread, so that its time on the processor is what counts: other programs hardly disturb it.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/bench_suites.h"
#include "app/cli/interrupt.h"
#include "app/cli/stat_cells.h"
#include "app/cli/table.h"
#include "app/cli/terminal.h"
#include "core/document/file_format.h"
#include "core/plan/analysis.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <functional>
#include <optional>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {

constexpr std::array kSizes = {10, 100, 1'000, 10'000, 100'000};
constexpr int kLargestQuickSize = 1'000;
constexpr int kBlockOps = 10;
/// Ten times the ops should take at most this many times the time: linear, with room for sorting and caches.
constexpr double kMostGrowth = 12.0;
/// A stage is repeated so often or so long, whichever is reached first, but at least a few times.
constexpr std::size_t kMostRounds = 25;
constexpr std::size_t kFewestRounds = 3;
constexpr double kStageBudgetNs = 0.5e9;

struct StageRow {
  int ops = 0;
  std::string stage;
  SampleStats timeNs;
  double share = 0.0;            // of all stages of this size
  std::optional<double> growth;  // over the size before
};

// ---- the pipeline

Json op(const std::string& id, const char* operation, Json attributes = Json::object()) {
  return {{"id", id}, {"op", operation}, {"attributes", std::move(attributes)}};
}

/// save, norm, two linears with their biases around an activation, dropout, the residual, a scale.
std::array<Json, kBlockOps> blockOps(const std::string& block) {
  const Json square = {{"in_features", "H"}, {"out_features", "H"}};
  return {op(block + "save", "MakeExtraOutput"),
          op(block + "norm", "RMSNorm", {{"normalized_shape", Json::array({"H"})}}),
          op(block + "fc1", "BasicLinear", square),
          op(block + "bias1", "Bias", {{"size", "H"}}),
          op(block + "act", "GELU"),
          op(block + "fc2", "BasicLinear", square),
          op(block + "bias2", "Bias", {{"size", "H"}}),
          op(block + "drop", "Dropout", {{"p", 0.1}}),
          op(block + "add", "AddExtraInput"),
          op(block + "scale", "ConstantScale", {{"scale", 0.5}})};
}

/// `numOps` is a multiple of kBlockOps.
std::string pipelineText(int numOps) {
  Json ops = Json::array();
  Json wires = Json::array();
  std::string last = "x";
  for (int block = 0; block < numOps / kBlockOps; ++block) {
    const std::string name = fmt::format("b{}_", block);
    for (Json& item : blockOps(name)) {
      const auto id = item["id"].get<std::string>();
      wires.push_back({last, id + ".x"});
      last = id + ".y";
      ops.push_back(std::move(item));
    }
    wires.push_back({name + "save.extra", name + "add.extra"});
  }
  const Json document = {{"format", "fuseline-pipeline"},
                         {"formatVersion", {{"major", 1}, {"minor", 0}}},
                         {"symbols", {{"M", 64}, {"H", 64}}},
                         {"pipeline",
                          {{"inputs", {{{"id", "x"}, {"dtype", "bf16"}, {"shape", {"M", "H"}}}}},
                           {"ops", std::move(ops)},
                           {"wires", std::move(wires)},
                           {"outputs", {{{"id", "y"}, {"from", last}}}}}}};
  return document.dump();
}

// ---- the stages

struct Stage {
  std::string name;
  std::function<void()> run;
};

/// A pipeline after each stage: what the next one reads.
struct StagedPipeline {
  explicit StagedPipeline(int numOps, Capabilities device)
      : text(pipelineText(numOps)), capabilities(std::move(device)), loaded(parseDocument(text)) {}

  Json editedScale() { return isEdited ? 0.5 : 0.25; }
  void edit() {
    const std::string last = loaded.document.ops().back().id;
    isEdited = !isEdited;
    (void)loaded.document.apply(SetAttribute{.id = last, .name = "scale", .value = editedScale()});
  }

  std::vector<Stage> stages() {
    return {{"load", [this] { loaded = parseDocument(text); }},
            {"infer", [this] { lowered = lower(loaded.document); }},
            {"fuse", [this] { report = std::move(*fuse(lowered.graph, {.capabilities = capabilities})); }},
            {"plan", [this] { plan = makePlan(lowered.graph, report); }},
            {"edit and re-plan", [this] {
               edit();
               analysis = analyze(loaded.document, {.capabilities = capabilities});
             }}};
  }

  std::string text;
  Capabilities capabilities;
  bool isEdited = false;
  LoadedDocument loaded;
  LoweredGraph lowered;
  FusionReport report;
  Plan plan;
  Analysis analysis;
};

double processorNs() { return static_cast<double>(std::clock()) * (1e9 / CLOCKS_PER_SEC); }

SampleStats measureStage(const Stage& stage, const std::stop_token& cancel) {
  std::vector<double> samplesNs;
  const double startNs = processorNs();
  while (!cancel.stop_requested()) {
    const double beginNs = processorNs();
    const bool isLong = beginNs - startNs >= kStageBudgetNs;
    if (samplesNs.size() >= kMostRounds || (isLong && samplesNs.size() >= kFewestRounds)) break;
    stage.run();
    samplesNs.push_back(processorNs() - beginNs);
  }
  return summarize(samplesNs);
}

// ---- rows

void setShares(std::vector<StageRow>& rows) {
  double totalNs = 0.0;
  for (const StageRow& row : rows) totalNs += row.timeNs.median;
  for (StageRow& row : rows) row.share = row.timeNs.median / totalNs;
}

Result<std::vector<StageRow>> measureSize(int numOps, const Capabilities& capabilities, const std::stop_token& cancel) {
  StagedPipeline pipeline(numOps, capabilities);
  std::vector<StageRow> rows;
  for (const Stage& stage : pipeline.stages()) {
    rows.push_back({.ops = numOps, .stage = stage.name, .timeNs = measureStage(stage, cancel)});
    if (cancel.stop_requested()) return Error{"The benchmark was cancelled.", ErrorKind::RunFailed};
  }
  if (!pipeline.analysis.isRunnable())
    return Error{fmt::format("bench scaling: the pipeline of {} ops cannot be planned: {}", numOps,
                             pipeline.analysis.lowered.diagnostics.front().message),
                 ErrorKind::RunFailed};
  setShares(rows);
  return rows;
}

/// `rows` ends with a size's stages, `more` has those of the next size, in the same order.
void append(std::vector<StageRow>& rows, std::vector<StageRow> more) {
  const std::size_t first = rows.size() - std::min(rows.size(), more.size());
  for (std::size_t i = 0; i < more.size(); ++i) {
    if (!rows.empty()) more[i].growth = more[i].timeNs.median / rows[first + i].timeNs.median;
  }
  rows.insert(rows.end(), more.begin(), more.end());
}

Result<std::vector<StageRow>> measureSizes(const BenchOptions& options, const Capabilities& capabilities) {
  const InterruptWatch interrupt;
  ProgressBar bar(true);
  std::vector<StageRow> rows;
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    if (options.isQuick && kSizes[i] > kLargestQuickSize) break;
    bar.show(fmt::format("{} ops", kSizes[i]), static_cast<int>(i), static_cast<int>(kSizes.size()));
    Result<std::vector<StageRow>> more = measureSize(kSizes[i], capabilities, interrupt.token());
    if (!more) return more.error();
    append(rows, std::move(*more));
  }
  return rows;
}

Cell growthCell(const std::optional<double>& growth) {
  if (!growth) return {};
  const bool isTooMuch = *growth > kMostGrowth;
  return {fmt::format("{:.1f}x{}", *growth, isTooMuch ? " !" : ""), isTooMuch ? Style::Bad : Style::Plain};
}

void printTable(const std::vector<StageRow>& rows, Context& context) {
  Table table({{"stage", Align::Left}, {"ms"}, {"± %"}, {"n"}, {"share"}, {"growth"}});
  int ops = 0;
  for (const StageRow& row : rows) {
    if (row.ops != ops) table.addHeading(fmt::format("{} ops", row.ops));
    ops = row.ops;
    table.addRow({"  " + row.stage, fmt::format("{:.3f}", row.timeNs.median / 1e6), spreadText(row.timeNs),
                  fmt::format("{}", row.timeNs.count), fmt::format("{:.0f} %", 100.0 * row.share),
                  growthCell(row.growth)});
  }
  context.out << table.toString(context.hasColour);
  context.out << fmt::format(
      "\nms: on the processor. growth: the time over that of the size before, a tenth of the ops; ! is above {:.0f}.\n",
      kMostGrowth);
}

Json toJson(const StageRow& row) {
  return {{"ops", row.ops},
          {"stage", row.stage},
          {"rounds", row.timeNs.count},
          {"medianNs", row.timeNs.median},
          {"spreadPercent", row.timeNs.spreadPercent()},
          {"share", row.share},
          {"growth", row.growth ? Json(*row.growth) : Json(nullptr)}};
}

}  // namespace

Result<int> benchScaling(const BenchOptions& options, Context& context) {
  Result<std::shared_ptr<Backend>> cpu = context.registry.open("cpu");
  if (!cpu) return cpu.error();
  const Result<std::vector<StageRow>> rows = measureSizes(options, capabilitiesOf(*cpu));
  if (!rows) return rows.error();
  if (!options.asJson) {
    printTable(*rows, context);
    return 0;
  }
  Json list = Json::array();
  for (const StageRow& row : *rows) list.push_back(toJson(row));
  printJson(context, {{"suite", options.suite}, {"device", (*cpu)->device().name}, {"rows", std::move(list)}});
  return 0;
}

}  // namespace fuseline::cli
