// Suite "scaling" of fuseline-bench: how the time of each stage before a run grows with the number of ops. The suite
// writes its pipelines itself: residual blocks of ten basic ops, one after the other. Nothing runs on a device, and one
// thread works at a time, so that its time on the processor is what counts: other programs hardly disturb it.
// SPDX-License-Identifier: Apache-2.0
#include "app/bench/suites.h"
#include "app/cli/interrupt.h"
#include "app/cli/stat_cells.h"
#include "app/cli/suite_run.h"
#include "app/cli/table.h"
#include "app/cli/terminal.h"
#include "core/document/file_format.h"
#include "core/edit/apply_edit.h"
#include "core/plan/analysis.h"
#include "core/support/field_table.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <functional>
#include <iterator>
#include <optional>
#include <semaphore>
#include <thread>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {

constexpr std::array kSizes = {10, 100, 1'000, 10'000, 100'000};
constexpr int kLargestQuickSize = 1'000;
constexpr int kBlockOps = 10;
/// Ten times the ops should take at most this many times the time: linear, with room for sorting and caches.
constexpr double kMostGrowth = 12.0;
/// Every round runs a stage at one size after the other, so that a machine that changes its speed disturbs all of them.
constexpr int kRounds = 7;

struct StageRow {
  int ops = 0;
  std::string stage;
  std::vector<double> roundsNs;      // of each round, the time of one run
  double share = 0.0;                // of all stages of this size
  std::optional<RatioStats> growth;  // over the size before, round by round

  double medianNs() const { return summarize(roundsNs).median; }
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
    (void)applyEdit(loaded.document, SetAttribute{.id = last, .name = "scale", .value = editedScale()});
  }

  std::vector<Stage> stages() {
    return {
        {"load", [this] { renew(loaded, [this] { return parseDocument(text); }); }},
        {"infer", [this] { renew(lowered, [this] { return lower(loaded.document); }); }},
        {"fuse", [this] { renew(report, [this] { return *fuse(lowered.graph, {.capabilities = capabilities}); }); }},
        {"plan", [this] { renew(plan, [this] { return makePlan(lowered.graph, report); }); }},
        {"edit and re-plan", [this] {
           edit();
           renew(analysis, [this] { return analyze(loaded.document, {.capabilities = capabilities}); });
         }}};
  }

  /// Lets go of the old result before it makes the new one, so that there is never more than one.
  template <class T, class Make>
  static void renew(T& result, const Make& make) {
    result = T();
    result = make();
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

/// One thread for one size. The allocator gives every thread memory of its own, so that what a large pipeline leaves
/// behind does not scatter a small one.
class OwnThread {
 public:
  OwnThread() : m_thread([this] { serve(); }) {}
  ~OwnThread() { give(nullptr); }
  OwnThread(const OwnThread&) = delete;
  OwnThread& operator=(const OwnThread&) = delete;

  /// Returns when it is done.
  void run(const std::function<void()>& work) {
    give(&work);
    m_isDone.acquire();
  }

 private:
  void give(const std::function<void()>* work) {
    m_work = work;
    m_isGiven.release();
  }

  void serve() {
    for (m_isGiven.acquire(); m_work; m_isGiven.acquire()) {
      (*m_work)();
      m_isDone.release();
    }
  }

  const std::function<void()>* m_work = nullptr;  // null: there is no more
  std::binary_semaphore m_isGiven{0};
  std::binary_semaphore m_isDone{0};
  std::jthread m_thread;  // last: it reads the others
};

double processorNs() { return static_cast<double>(std::clock()) * (1e9 / CLOCKS_PER_SEC); }

/// The time of a run of the stage, as the mean over pipelines.
double timeOf(std::vector<std::unique_ptr<StagedPipeline>>& pipelines, std::size_t stage) {
  const double startNs = processorNs();
  for (const auto& pipeline : pipelines) pipeline->stages()[stage].run();
  return (processorNs() - startNs) / static_cast<double>(pipelines.size());
}

// ---- rows

/// A size with its pipelines, of `totalOps` in all, and a row for each stage.
struct SizeRun {
  SizeRun(int numOps, int totalOps, const Capabilities& capabilities)
      : ops(numOps), thread(std::make_unique<OwnThread>()) {
    thread->run([&] {
      for (int i = 0; i < totalOps / numOps; ++i)
        pipelines.push_back(std::make_unique<StagedPipeline>(numOps, capabilities));
    });
    for (const Stage& stage : pipelines.front()->stages()) rows.push_back({.ops = ops, .stage = stage.name});
  }

  void measure(std::size_t stage) {
    thread->run([&] { rows[stage].roundsNs.push_back(timeOf(pipelines, stage)); });
  }

  int ops;
  std::unique_ptr<OwnThread> thread;
  std::vector<std::unique_ptr<StagedPipeline>> pipelines;
  std::vector<StageRow> rows;
};

void setShares(std::vector<StageRow>& rows) {
  double totalNs = 0.0;
  for (const StageRow& row : rows) totalNs += row.medianNs();
  for (StageRow& row : rows) row.share = totalNs > 0.0 ? row.medianNs() / totalNs : 0.0;
}

/// Over the rounds that both have: a benchmark that was stopped has fewer of the larger size.
void setGrowth(std::vector<StageRow>& rows, const std::vector<StageRow>& before) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<double> smallNs = before[i].roundsNs;
    smallNs.resize(std::min(smallNs.size(), rows[i].roundsNs.size()));
    if (!smallNs.empty()) rows[i].growth = compareRounds(rows[i].roundsNs, smallNs);
  }
}

std::vector<StageRow> rowsOf(std::vector<SizeRun>& sizes) {
  std::vector<StageRow> rows;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    setShares(sizes[i].rows);
    if (i > 0) setGrowth(sizes[i].rows, sizes[i - 1].rows);
    std::ranges::copy_if(sizes[i].rows, std::back_inserter(rows),
                         [](const StageRow& row) { return !row.roundsNs.empty(); });
  }
  return rows;
}

/// False: it was cancelled.
bool measureRound(std::vector<SizeRun>& sizes, const std::stop_token& cancel) {
  if (sizes.empty()) return false;
  for (std::size_t stage = 0; stage < sizes.front().rows.size(); ++stage) {
    for (SizeRun& size : sizes) {
      if (cancel.stop_requested()) return false;
      size.measure(stage);
    }
  }
  return true;
}

std::vector<SizeRun> sizesOf(const BenchOptions& options, const Capabilities& capabilities,
                             const std::stop_token& cancel) {
  const int largest = options.isQuick ? kLargestQuickSize : kSizes.back();
  std::vector<SizeRun> sizes;
  for (const int numOps : kSizes)
    if (numOps <= largest && !cancel.stop_requested()) sizes.emplace_back(numOps, largest, capabilities);
  return sizes;
}

/// Errors: a pipeline cannot be planned. Measurements taken before it was cancelled are kept.
Result<SuiteRun<StageRow>> measureSizes(const BenchOptions& options, const Capabilities& capabilities,
                                        const std::stop_token& cancel) {
  ProgressBar bar(true);
  std::vector<SizeRun> sizes = sizesOf(options, capabilities, cancel);
  for (int round = 0; round < kRounds; ++round) {
    bar.show(fmt::format("round {}", round + 1), round, kRounds);
    if (!measureRound(sizes, cancel))
      return SuiteRun<StageRow>{.outcomes = rowsOf(sizes),
                                .ended = fmt::format("The benchmark was cancelled in round {}.", round + 1)};
  }
  for (const SizeRun& size : sizes) {
    const Analysis& analysis = size.pipelines.front()->analysis;
    if (!analysis.isRunnable())
      return Error{fmt::format("scaling: the pipeline of {} ops cannot be planned: {}", size.ops,
                               analysis.lowered.diagnostics.front().message),
                   ErrorKind::RunFailed};
  }
  return SuiteRun<StageRow>{.outcomes = rowsOf(sizes)};
}

/// Too much is what is so with confidence.
bool isTooMuch(const RatioStats& growth) { return growth.low > kMostGrowth; }

Cell growthCell(const std::optional<RatioStats>& growth) {
  if (!growth) return {};
  return {fmt::format("{:.1f}x{}", growth->median, isTooMuch(*growth) ? " !" : ""),
          isTooMuch(*growth) ? Style::Bad : Style::Plain};
}

std::string intervalText(const std::optional<RatioStats>& growth) {
  return growth ? fmt::format("{:.1f} to {:.1f}", growth->low, growth->high) : "";
}

void printTable(const std::vector<StageRow>& rows, Context& context) {
  Table table({{"stage", Align::Left}, {"ms"}, {"± %"}, {"n"}, {"share"}, {"growth"}, {"95 %"}});
  int ops = 0;
  for (const StageRow& row : rows) {
    if (row.ops != ops) table.addHeading(fmt::format("{} ops", row.ops));
    ops = row.ops;
    const SampleStats timeNs = summarize(row.roundsNs);
    table.addRow({"  " + row.stage, fmt::format("{:.3f}", timeNs.median / 1e6), spreadText(timeNs),
                  fmt::format("{}", timeNs.count), fmt::format("{:.0f} %", 100.0 * row.share), growthCell(row.growth),
                  intervalText(row.growth)});
  }
  context.out << table.toString(context.hasColour);
  context.out << fmt::format(
      "\nms: CPU time. growth: time / time at the previous size, which has a tenth of the ops, with its "
      "confidence\ninterval; ! is above {:.0f}.\n",
      kMostGrowth);
}

Field<StageRow> growthField(std::string key, double RatioStats::*member, std::string_view help) {
  return {std::move(key), schema::orNull(schema::number(help)),
          [member](const StageRow& row) { return row.growth ? Json((*row.growth).*member) : Json(); }};
}

const FieldTable<StageRow>& stageFields() {
  const auto times = [](auto member) {
    return [member](const StageRow& row) { return std::invoke(member, summarize(row.roundsNs)); };
  };
  static const FieldTable<StageRow> table(
      {field("ops", &StageRow::ops, "Number of ops of the pipeline."),
       field("stage", &StageRow::stage).oneOf({"load", "infer", "fuse", "plan", "edit and re-plan"}),
       derived<StageRow>("rounds", times(&SampleStats::count), "Number of measured rounds."),
       derived<StageRow>("medianNs", times(&SampleStats::median), "CPU time."),
       derived<StageRow>("spreadPercent", times(&SampleStats::spreadPercent), "Half the interquartile range / median."),
       field("share", &StageRow::share, "Share of the time of all stages."),
       growthField("growth", &RatioStats::median, "Time / time at the previous size; null: the first size."),
       growthField("growthLow", &RatioStats::low, "Lower end of its 95 % confidence interval."),
       growthField("growthHigh", &RatioStats::high, "Upper end of its 95 % confidence interval.")});
  return table;
}

}  // namespace

Json scalingBenchRow() { return stageFields().schema(); }

Result<int> benchScaling(const BenchOptions& options, Context& context) {
  const InterruptWatch interrupt;  // before any thread of a backend exists, so that all inherit the blocked signals
  Result<std::shared_ptr<Backend>> cpu = context.registry.open("cpu");
  if (!cpu) return cpu.error();
  const Result<SuiteRun<StageRow>> run = measureSizes(options, capabilitiesOf(*cpu), interrupt.token());
  if (!run) return run.error();
  if (!options.asJson) {
    printTable(run->outcomes, context);
    return run->exitCode();
  }
  Json list = Json::array();
  for (const StageRow& row : run->outcomes) list.push_back(stageFields().toJson(row));
  printJson(context, {{"suite", options.suite}, {"device", (*cpu)->device().name}, {"rows", std::move(list)}});
  return run->exitCode();
}

}  // namespace fuseline::cli
