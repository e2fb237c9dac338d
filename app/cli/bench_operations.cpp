// Suite "ops" of fuseline bench: every basic op alone, forward and backward, as a share of the roofs measured in the
// same run. Tensors are beyond the last-level cache, so that the roof of an op that moves data is memory.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/bench_suites.h"
#include "app/cli/interrupt.h"
#include "app/cli/stat_cells.h"
#include "app/cli/table.h"
#include "app/cli/terminal.h"
#include "core/document/file_format.h"
#include "core/ops/catalog.h"
#include "core/runtime/pipeline_run.h"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {

constexpr std::int64_t kCols = 4096;
constexpr std::int64_t kInputBytes = std::int64_t{128} << 20;
constexpr std::int64_t kQuickInputBytes = std::int64_t{4} << 20;
/// A product is measured on fewer rows: it is far from the memory's roof then too.
constexpr std::int64_t kProductRows = 1024;
constexpr std::array<const char*, 2> kDTypes = {"f32", "bf16"};
constexpr double kPoorShare = 0.5;

struct OperationCase {
  const FusibleOperation* operation = nullptr;
  std::string dtype;
};

struct OperationRow {
  OperationCase what;
  StepRecord step;
  SampleStats time;
  double share = 0.0;
  std::string reason;  // of a share below half
};

struct OperationResult {
  OperationCase what;
  std::vector<StepRecord> steps;
  std::string problem;  // why it could not be measured
};

std::vector<OperationCase> casesOf(const BenchOptions& options) {
  std::vector<OperationCase> cases;
  for (const auto& operation : builtinOperations().operations())
    for (const char* dtype : kDTypes)
      if (!operation->isComposite() && (options.only.empty() || options.only == operation->name))
        cases.push_back({operation.get(), dtype});
  return cases;
}

/// Attributes without a default are sizes of the last axis.
Json attributesFor(const FusibleOperation& operation) {
  Json attributes = Json::object();
  for (const AttributeSpec& spec : operation.attributes) {
    if (!spec.isRequired()) continue;
    if (spec.type == AttributeType::Integer) attributes[spec.name] = "N";
    if (spec.type == AttributeType::IntegerList)  // -1 where an extent may follow from the others
      attributes[spec.name] = spec.minimum.value_or(0.0) < 0.0 ? Json::array({-1, "N"}) : Json::array({"N"});
    if (spec.type == AttributeType::Real) attributes[spec.name] = 0.5;
  }
  return attributes;
}

/// Extra inputs look like the main one, or have one value a row; counts are those of one group.
Json inputFor(const FusibleOperation& operation, const Port& port, const std::string& dtype) {
  const std::string id = "in_" + port.name;
  if (port.elements == PortElements::Counts) return {{"id", id}, {"dtype", "i64"}, {"shape", Json::array({1})}};
  const bool isLikeMain = &port == &operation.inputs.front() || port.shape == operation.inputs.front().shape;
  return {{"id", id}, {"dtype", dtype}, {"shape", isLikeMain ? Json::array({"M", "N"}) : Json::array({"M"})}};
}

Json inputsFor(const FusibleOperation& operation, const std::string& dtype) {
  Json inputs = Json::array();
  for (const Port& port : operation.inputs) inputs.push_back(inputFor(operation, port, dtype));
  return inputs;
}

/// A pipeline of one op.
LoadedDocument documentFor(const OperationCase& what) {
  const FusibleOperation& operation = *what.operation;
  Json wires = Json::array();
  for (const Port& port : operation.inputs) wires.push_back({"in_" + port.name, "op." + port.name});
  Json outputs = Json::array();
  for (const Port& port : operation.outputs)
    outputs.push_back({{"id", "out_" + port.name}, {"from", "op." + port.name}});
  const Json op = {{"id", "op"}, {"op", operation.name}, {"attributes", attributesFor(operation)}};
  const Json document = {{"format", "fuseline-pipeline"},
                         {"formatVersion", {{"major", 1}, {"minor", 0}}},
                         {"symbols", {{"M", kProductRows}, {"N", kCols}}},
                         {"pipeline",
                          {{"inputs", inputsFor(operation, what.dtype)},
                           {"ops", Json::array({op})},
                           {"wires", wires},
                           {"outputs", outputs}}}};
  return parseDocument(document.dump());
}

bool isProduct(const FusibleOperation& operation) {
  return std::ranges::any_of(operation.parameters, [](const ParameterSpec& parameter) {
    return parameter.shape.find(',') != std::string::npos;
  });
}

PipelineRunOptions optionsFor(const OperationCase& what, bool isQuick) {
  const std::int64_t elementBytes = what.dtype == "f32" ? 4 : 2;
  const std::int64_t rows = (isQuick ? kQuickInputBytes : kInputBytes) / (kCols * elementBytes);
  PipelineRunOptions options{.variants = {"unfused"}};
  options.settings.symbols = {{"M", isProduct(*what.operation) ? std::min(rows, kProductRows) : rows}, {"N", kCols}};
  options.policy.budget = std::chrono::duration<double>(0.6);
  return options;
}

Result<RunRecord> measureCase(const OperationCase& what, bool isQuick, const Context& context,
                              const std::stop_token& cancel) {
  Result<std::unique_ptr<PipelineRun>> run =
      PipelineRun::prepare(documentFor(what), what.operation->name, optionsFor(what, isQuick), context.registry);
  if (!run) return run.error();
  return (*run)->measure({}, cancel);
}

Result<std::vector<OperationResult>> measureCases(const BenchOptions& options, const Context& context,
                                                  const std::stop_token& cancel) {
  const std::vector<OperationCase> cases = casesOf(options);
  std::vector<OperationResult> results;
  ProgressBar bar(true);
  for (const OperationCase& what : cases) {
    bar.show(fmt::format("{} {}", what.operation->name, what.dtype), static_cast<int>(results.size()),
             static_cast<int>(cases.size()));
    Result<RunRecord> record = measureCase(what, options.isQuick, context, cancel);
    if (record && record->isPartial) return Error{"The benchmark was cancelled.", ErrorKind::RunFailed};
    if (record)
      results.push_back({.what = what, .steps = std::move(record->variants.front().steps)});
    else
      results.push_back({.what = what, .problem = record.error().message});
  }
  return results;
}

std::vector<OperationRow> rowsOf(const std::vector<OperationResult>& results, const MachineRoofs& roofs) {
  std::vector<OperationRow> rows;
  for (const OperationResult& result : results)
    for (const StepRecord& step : result.steps) {
      OperationRow row{.what = result.what, .step = step, .time = summarize(step.samplesNs)};
      if (!step.isView) row.share = leastTimeNs(step, roofs, result.what.dtype) / row.time.median;
      rows.push_back(std::move(row));
    }
  return rows;
}

// ---- why a share is low: the same step on tensors that stay in the cache

bool isPoor(const OperationRow& row) { return !row.step.isView && row.share < kPoorShare; }

double nsPerByte(const StepRecord& step) {
  return summarize(step.samplesNs).median / static_cast<double>(std::max<std::int64_t>(step.bytes, 1));
}

/// In the cache a step takes `share` of its time.
std::string reasonOf(double share) {
  if (share >= 1.0) return "in the cache a byte takes no less: all of it is arithmetic";
  return fmt::format("in the cache a byte takes {:.0f} % of this time: so much is arithmetic, the rest is memory",
                     100.0 * share);
}

/// Fills in the reasons of the poor rows. Rows of one case follow each other, a row a step.
Result<void> explainPoorRows(std::vector<OperationRow>& rows, const Context& context, const std::stop_token& cancel) {
  for (std::size_t first = 0; first < rows.size();) {
    std::size_t last = first;
    while (last < rows.size() && rows[last].what.operation == rows[first].what.operation &&
           rows[last].what.dtype == rows[first].what.dtype)
      ++last;
    const std::span<OperationRow> group(&rows[first], last - first);
    first = last;
    if (std::ranges::none_of(group, isPoor)) continue;
    const Result<RunRecord> record = measureCase(group.front().what, true, context, cancel);
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
      context.out << fmt::format("! {} {} {}: {}.\n", row.what.operation->name, row.what.dtype, row.step.phase,
                                 row.reason);
}

void addRow(Table& table, const OperationRow& row) {
  if (row.step.isView) {
    table.addRow({"  " + row.step.phase, row.what.dtype, "view", "", "", "", "", ""});
    return;
  }
  table.addRow({"  " + row.step.phase, row.what.dtype, fmt::format("{:.3f}", row.time.median / 1e6),
                spreadText(row.time), fmt::format("{}", row.time.count),
                fmt::format("{:.1f}", static_cast<double>(row.step.bytes) / row.time.median),
                fmt::format("{:.0f}", static_cast<double>(row.step.flops) / row.time.median),
                fmt::format("{:.0f} %{}", 100.0 * row.share, row.share < kPoorShare ? " !" : "")});
}

void printTable(const std::vector<OperationRow>& rows, const MachineRoofs& roofs, Context& context) {
  context.out << roofsText(roofs) << "\n\n";
  Table table(
      {{"op", Align::Left}, {"dtype", Align::Left}, {"ms"}, {"± %"}, {"n"}, {"GB/s"}, {"GFLOP/s"}, {"of roof"}});
  const FusibleOperation* operation = nullptr;
  for (const OperationRow& row : rows) {
    if (row.what.operation != operation) table.addHeading(row.what.operation->name);
    operation = row.what.operation;
    addRow(table, row);
  }
  context.out << table.toString(context.hasColour);
  context.out
      << "\nof roof: the least time that the roofs allow, over the time. Bytes are the least traffic; ! is below "
         "half.\n";
  printReasons(rows, context);
}

Json toJson(const OperationRow& row) {
  return {{"op", row.what.operation->name},
          {"dtype", row.what.dtype},
          {"phase", row.step.phase},
          {"isView", row.step.isView},
          {"rounds", row.time.count},
          {"medianNs", row.time.median},
          {"bytes", row.step.bytes},
          {"flops", row.step.flops},
          {"roofShare", row.share},
          {"spreadPercent", row.time.spreadPercent()},
          {"reason", row.reason}};
}

/// Empty: all ops.
Result<void> checkOnly(const std::string& name) {
  const FusibleOperation* const operation = builtinOperations().find(name);
  if (name.empty() || (operation && !operation->isComposite())) return {};
  if (operation)
    return Error{fmt::format("bench ops: {} is a composite; only basic ops are measured alone.", name),
                 ErrorKind::Usage};
  const std::string near = builtinOperations().nearestName(name);
  return Error{fmt::format("bench ops: there is no op {}{}", name,
                           near.empty() ? "; `fuseline ops` lists them." : fmt::format("; did you mean {}?", near)),
               ErrorKind::Usage};
}

}  // namespace

Result<int> benchOperations(const BenchOptions& options, Context& context) {
  if (Result<void> known = checkOnly(options.only); !known) return known.error();
  const InterruptWatch interrupt;
  const auto measured =
      measureWithRoofs<std::vector<OperationResult>>([&] { return measureCases(options, context, interrupt.token()); });
  if (!measured) return measured.error();
  std::vector<OperationRow> rows = rowsOf(measured->result, measured->roofs);
  if (!options.isQuick)
    if (Result<void> explained = explainPoorRows(rows, context, interrupt.token()); !explained)
      return explained.error();
  for (const OperationResult& result : measured->result)
    if (!result.problem.empty()) context.err << "not measured: " << result.problem << '\n';
  if (!options.asJson) {
    printTable(rows, measured->roofs, context);
    return 0;
  }
  Json list = Json::array();
  for (const OperationRow& row : rows) list.push_back(toJson(row));
  printSuite(options, measured->roofs, std::move(list), context);
  return 0;
}

}  // namespace fuseline::cli
