// fuseline-bench: the benchmark suites. They measure Fuseline itself, so they are no verb of the product.
// SPDX-License-Identifier: Apache-2.0
#include "app/backends.h"
#include "app/bench/suites.h"
#include "app/cli/program.h"
#include "core/support/field_table.h"
#include "core/support/output_schema.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline::cli {

namespace {

/// An option that a suite does not know would be taken for a wish that it meets.
Result<void> checkOptions(const BenchOptions& options) {
  struct Option {
    const char* name;
    const std::string& value;
    std::vector<std::string> suites;
  };
  for (const Option& option :
       {Option{"--only", options.only, {"ops", "gpu"}}, Option{"--device", options.device, {"ops", "gpu"}},
        Option{"--records", options.recordsFolder, {"gpu"}}, Option{"--jsonl", options.linesFile, {"ops", "gpu"}}})
    if (!option.value.empty() && std::ranges::count(option.suites, options.suite) == 0)
      return Error{fmt::format("{}: {} is an option of suite {} only.", options.suite, option.name,
                               fmt::join(option.suites, " and ")),
                   ErrorKind::Usage};
  if (options.startsCold && options.suite != "ops")
    return Error{fmt::format("{}: --cold is an option of suite ops only.", options.suite), ErrorKind::Usage};
  for (const auto& [name, isGiven] : {std::pair("--all", options.isAll), {"--list", options.isListed}})
    if (isGiven && options.suite != "gpu")
      return Error{fmt::format("{}: {} is an option of suite gpu only.", options.suite, name), ErrorKind::Usage};
  return {};
}

Json benchSchema() {
  const Json peaks = fieldSchema<DevicePeaks>();
  const auto suite = [&](const char* name, const Json& row) {
    return schema::object({{"suite", schema::choice({name})},
                           {"device", schema::text("Name of the device.")},
                           {"startsCold", schema::flag("Caches are filled with other data before every run.")},
                           {"peaks", peaks},
                           {"rows", schema::list(row)}});
  };
  const Json scaling = schema::object({{"suite", schema::choice({"scaling"})},
                                       {"device", schema::text("Name of the device.")},
                                       {"rows", schema::list(scalingBenchRow())}});
  const Json gpu = schema::object({{"suite", schema::choice({"gpu"})},
                                   {"device", schema::text("Name of the device.")},
                                   {"peaks", schema::orNull(peaks)},
                                   {"rows", schema::list(gpuBenchRow())}});
  const Json cases = schema::object(
      {{"suite", schema::choice({"gpu"})},
       {"cases", schema::list(schema::object(
                     {{"name", schema::text("Name of the case, as for --only.")},
                      {"isDefault", schema::flag("Whether the case runs by default (without --only).")}}))}});
  return {
      {"description", "With --jsonl the first line is this object without its rows, and each further line is one row."},
      {"oneOf",
       Json::array({suite("cpu", pipelineBenchRow()), suite("ops", operationBenchRow()), scaling, gpu, cases})}};
}

Result<int> bench(const BenchOptions& options, Context& context) {
  if (Result<void> known = checkOptions(options); !known) return known.error();
  if (options.showsSchema) return printJson(context, benchSchema()), 0;
  if (options.suite == "cpu") return benchPipelines(options, context);
  if (options.suite == "ops") return benchOperations(options, context);
  if (options.suite == "scaling") return benchScaling(options, context);
  if (options.suite == "gpu") return benchGpu(options, context);
  return Error{fmt::format("{}: there is no such suite. Valid values: cpu, gpu, ops, scaling.", options.suite),
               ErrorKind::Usage};
}

}  // namespace

Json suiteHead(const BenchOptions& options, const Backend& backend, const DevicePeaks& peaks) {
  return {{"suite", options.suite},
          {"device", backend.device().name},
          {"startsCold", options.startsCold},
          {"peaks", toJson(peaks)}};
}

void printSuite(const BenchOptions& options, const Backend& backend, const DevicePeaks& peaks, Json rows,
                Context& context) {
  Json suite = suiteHead(options, backend, peaks);
  suite["rows"] = std::move(rows);
  printJson(context, suite);
}

void addOptions(CLI::App& app, Context& context) {
  const auto options = std::make_shared<BenchOptions>();
  app.add_option("SUITE", options->suite, "Suite: cpu, gpu, ops or scaling")->capture_default_str();
  app.add_flag("--quick", options->isQuick, "Small sizes only");
  app.add_flag("--cold", options->startsCold,
               "Suite ops: fill the caches with other data before every run; without it small ops find their tensors "
               "in the cache");
  app.add_option("--only", options->only,
                 "Suite ops: only this op or layer, or \"layers\"; suite gpu: only cases whose name contains this, "
                 "such as llama-mlp_8B_")
      ->type_name("NAME");
  app.add_option("--device", options->device,
                 "Suites ops and gpu: device to measure (default: the CPU, or the first GPU)");
  app.add_option("--records", options->recordsFolder, "Suite gpu: folder for a run file of every case")
      ->type_name("FOLDER");
  app.add_flag("--all", options->isAll, "Suite gpu: every pipeline, size, recipe and pass");
  app.add_flag("--list", options->isListed, "Suite gpu: list the names of the cases");
  app.add_flag("--json", options->asJson, "Machine-readable output");
  CLI::Option* const lines = app.add_option("--jsonl", options->linesFile,
                                            "Suites ops and gpu: write each row of --json as a line as soon as it is "
                                            "measured; the first line has all other fields")
                                 ->type_name("FILE.jsonl");
  app.add_flag("--force", options->replaces, "Overwrite existing files")->needs(lines);
  app.add_flag("--schema", options->showsSchema, "Print the JSON Schema of --json and exit");
  app.footer("Examples:\n  fuseline-bench ops --quick\n  fuseline-bench scaling");
  app.callback([&context, options] { finish(bench(*options, context), "fuseline-bench", context); });
}

}  // namespace fuseline::cli

int main(int argc, char** argv) {
  using namespace fuseline;
  return cli::runProgram({.name = "fuseline-bench",
                          .description = "Runs a benchmark suite: cpu or gpu (the examples), ops (every op alone) or "
                                         "scaling (planning, by number of ops).",
                          .declare = cli::addOptions,
                          .makeRegistry = makeBackendRegistry},
                         argc, argv);
}
