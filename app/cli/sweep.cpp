// fuseline sweep: a pipeline at many sizes, unfused against fused, and from where on fusing is faster.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/interrupt.h"
#include "app/cli/measuring_options.h"
#include "app/cli/output_file.h"
#include "app/cli/remote/on_option.h"
#include "app/cli/suite_run.h"
#include "app/cli/sweep_table.h"
#include "app/cli/terminal.h"
#include "app/cli/verbs.h"
#include "core/export/any_document.h"
#include "core/profile/run_file.h"
#include "core/quant/recipe_list.h"
#include "core/runtime/quantized_linears.h"
#include "core/runtime/rank_prediction.h"
#include "core/support/atomic_file.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {
namespace sweep_parts {

struct SweepOptions : MeasuringOptions {
  OnOption on;
  std::vector<std::string> axes;
  std::string recordsFolder;
  std::string tableFile;
  bool replaces = false;
  bool asCsv = false;
};

/// Settings that the points have in common.
struct PreparedSweep {
  ShapeSweep sweep;
  OpenedPipeline pipeline;
  PipelineRunOptions options;
};

Result<void> checkSweepOptions(const SweepOptions& options, const ShapeSweep& sweep) {
  if (!options.measuredFiles.empty())
    return Error{"--measured: a run belongs to its own sizes, but a sweep has others. Remove --measured.",
                 ErrorKind::Usage};
  if (!sweep.recipes.empty() && !options.spec.recipe.empty())
    return Error{
        fmt::format("--recipe {}: recipes are already an axis of this sweep. Remove --recipe.", options.spec.recipe),
        ErrorKind::Usage};
  if (namesSeveralRecipes(options.spec.recipe))
    return Error{
        fmt::format("--recipe {0}: expected one recipe. For several use --over recipe={0}.", options.spec.recipe),
        ErrorKind::Usage};
  return options.tableFile.empty() ? Result<void>() : checkWritable(options.tableFile);
}

Result<void> checkAxes(const ShapeSweep& sweep, const PipelineDocument& document) {
  for (const SweepAxis& axis : sweep.axes) {
    const Verdict known = hasSymbol(document, axis.symbol);
    if (axis.symbol == kRanksAxis || axis.symbol == kChunksAxis) {
      if (!known) continue;
      return Error{fmt::format("--over {0}: the pipeline has a symbol {0}, but this axis is that of --{0}. Rename the "
                               "symbol.",
                               axis.symbol),
                   ErrorKind::Usage};
    }
    if (!known) return Error{fmt::format("--over {}: {}", axis.symbol, known.reason()), ErrorKind::Usage};
  }
  return {};
}

PipelineOptions optionsAt(const SweepPoint& point, const SweepOptions& options) {
  PipelineOptions at = options;
  point.applyTo(at.spec);
  return at;
}

/// At the first point that makes sense; others that do not become rows. Errors: those of the first, if none does.
Result<OpenedPipeline> openAnywhere(const std::vector<SweepPoint>& points, const SweepOptions& options,
                                    Context& context) {
  Result<OpenedPipeline> first = openPipeline(optionsAt(points.front(), options), context);
  for (std::size_t i = 1; !first && i < points.size(); ++i)
    if (Result<OpenedPipeline> next = openPipeline(optionsAt(points[i], options), context); next) return next;
  return first;
}

Result<PreparedSweep> prepare(const SweepOptions& options, Context& context) {
  Result<ShapeSweep> sweep = parseSweep(options.axes);
  if (!sweep) return sweep.error();
  if (Result<void> fits = checkSweepOptions(options, *sweep); !fits) return fits.error();
  Result<PipelineRunOptions> runOptions = pipelineRunOptions(options);
  if (!runOptions) return runOptions.error();
  const Result<LoadedDocument> loaded = loadOrImportDocument(options.file);
  if (!loaded) return loaded.error();
  if (!hasErrors(loaded->diagnostics))
    if (Result<void> known = checkAxes(*sweep, loaded->document); !known) return known.error();
  Result<OpenedPipeline> pipeline = openAnywhere(sweep->points(), options, context);
  if (!pipeline) return pipeline.error();
  runOptions->gains = pipeline->options.gains;
  if (Result<void> made = makeFolder("--records", options.recordsFolder); !made) return made.error();
  return PreparedSweep{.sweep = std::move(*sweep), .pipeline = std::move(*pipeline), .options = std::move(*runOptions)};
}

std::string communicationText(const Analysis& analysis, const RunRecord& record) {
  if (analysis.ranks == 1) return {};
  const OverlapEstimate overlap =
      measuredOverlap(*record.variant("fused"), *analysis.fusedPlan, analysis.graph(), analysis.ranks);
  return fmt::format("The fused plan exposes {} of its {} of communication. {}", toString(overlap.exposed()),
                     toString(overlap.communication), userbuffersText(overlap));
}

Result<SweepRow> measurePoint(const SweepPoint& point, const std::string& name, const PreparedSweep& prepared,
                              const BackendRegistry& registry, const std::stop_token& cancel) {
  PipelineRunOptions options = prepared.options;
  point.applyTo(options.settings);
  if (!point.recipe.empty())
    if (Result<void> meant = checkQuantizes(prepared.pipeline.loaded.document, options.settings); !meant)
      return meant.error();
  Result<std::unique_ptr<PipelineRun>> run =
      PipelineRun::prepare(prepared.pipeline.loaded, name, std::move(options), registry);
  if (!run) return run.error();
  Result<RunRecord> record = (*run)->measure({}, cancel);
  if (!record) return record.error();
  std::string communication = communicationText((*run)->analysis(), *record);
  SweepRow row = measuredRow(point, std::move(*record));
  row.communication = std::move(communication);
  return row;
}

/// "FOLDER/mlp_M=512_MXFP8BlockScaling.fuserun"
std::filesystem::path recordFileOf(const SweepPoint& point, const SweepOptions& options) {
  std::string name = fmt::format("{} {}.fuserun", pipelineNameOf(options), point.name());
  std::ranges::replace(name, ' ', '_');
  return std::filesystem::path(options.recordsFolder) / name;
}

Result<void> writeRecord(const SweepRow& row, const SweepOptions& options) {
  if (options.recordsFolder.empty() || !row.isMeasured()) return {};
  return saveRunRecord(*row.record, recordFileOf(row.point, options));
}

/// Records that are there are those of another sweep.
Result<void> checkFiles(const ShapeSweep& sweep, const SweepOptions& options) {
  VerbFiles files{.read = filesRead(options), .written = {{"-o", options.tableFile}}};
  if (!options.recordsFolder.empty())
    for (const SweepPoint& point : sweep.points())
      files.written.emplace_back("--records", recordFileOf(point, options).string());
  return checkOutputs(files, options.replaces);
}

SuiteRun<SweepRow> measureAll(const SweepOptions& options, const PreparedSweep& prepared, const Backend& backend,
                              const Context& context, const std::stop_token& cancel) {
  const std::string name = pipelineNameOf(options);
  ProgressBar bar(!options.isQuiet);
  const SuiteSteps<SweepPoint, SweepRow> steps{
      .name = &SweepPoint::name,
      .measure = [&](const SweepPoint& point) { return measurePoint(point, name, prepared, context.registry, cancel); },
      .refuse = [](const SweepPoint& point,
                   const std::string& reason) { return SweepRow{.point = point, .reason = reason}; },
      .keep = [&](const SweepRow& row) { return writeRecord(row, options); },
      .isDeviceLost = [&] { return backend.isLost(); },
      .show = [&](const std::string& point, int done, int total) { bar.show(point, done, total); }};
  return runSuite(prepared.sweep.points(), steps, cancel);
}

void print(const SweepResult& result, const SweepOptions& options, Context& context) {
  if (options.asJson)
    printJson(context, toJson(result));
  else if (options.asCsv)
    context.out << sweepCsv(result);
  else
    context.out << sweepTable(result, context.hasColour);
}

Result<void> writeTable(const SweepResult& result, const SweepOptions& options) {
  if (options.tableFile.empty()) return {};
  return writeFileAtomically(options.tableFile, [&](std::ostream& file) { file << sweepCsv(result); });
}

Result<int> sweepThere(const SweepOptions& options, Context& context) {
  const Result<ShapeSweep> sweep = parseSweep(options.axes);
  if (!sweep) return sweep.error();
  if (Result<void> fits = checkSweepOptions(options, *sweep); !fits) return fits.error();
  if (Result<void> files = checkFiles(*sweep, options); !files) return files.error();
  if (Result<void> made = makeFolder("--records", options.recordsFolder); !made) return made.error();
  const VerbFiles files{.read = filesRead(options),
                        .written = {{"-o", options.tableFile}, {"--records", options.recordsFolder}}};
  return callThere(options.on, {.files = files, .replaces = options.replaces, .isQuiet = options.isQuiet}, context);
}

Result<int> sweepSizes(const SweepOptions& options, Context& context) {
  if (options.on.isGiven()) return sweepThere(options, context);
  const InterruptWatch interrupt;  // before any thread of a backend exists, so that all inherit the blocked signals
  const Result<PreparedSweep> prepared = prepare(options, context);
  if (!prepared) return prepared.error();
  if (Result<void> files = checkFiles(prepared->sweep, options); !files) return files.error();
  const Result<std::shared_ptr<Backend>> backend = context.registry.open(options.spec.device);
  if (!backend) return backend.error();
  SuiteRun<SweepRow> run = measureAll(options, *prepared, **backend, context, interrupt.token());
  const SweepResult result{.pipelineName = pipelineNameOf(options),
                           .deviceName = (*backend)->device().name,
                           .sweep = prepared->sweep,
                           .rows = std::move(run.outcomes)};
  const bool hasTimes = std::ranges::any_of(result.rows, &SweepRow::isMeasured);
  print(result, options, context);
  if (hasTimes || run.ended.empty())  // what was stopped before its first size replaces no older table
    if (Result<void> written = writeTable(result, options); !written) return written.error();
  if (!run.ended.empty()) return run.exitCode();
  if (!hasTimes)
    return Error{
        fmt::format("No size could be measured. {}: {}", result.rows.front().point.name(), result.rows.front().reason),
        ErrorKind::RunFailed};
  return 0;
}

void addSweepFiles(CLI::App& verb, SweepOptions& options) {
  CLI::Option* csv = verb.add_flag("--csv", options.asCsv, "Print the table as comma-separated values");
  csv->excludes(verb.get_option("--json"));
  verb.add_option("-o,--output", options.tableFile, "Also write the table as comma-separated values")
      ->type_name("FILE.csv");
  verb.add_flag("--force", options.replaces, "Overwrite existing files");
  verb.add_option("--records", options.recordsFolder, "Folder for the run file of every size")->type_name("FOLDER");
  verb.add_flag("--quiet", options.isQuiet, "Print no progress");
}

}  // namespace sweep_parts
}  // namespace

void addSweepVerb(CLI::App& app, Context& context) {
  using namespace sweep_parts;
  const auto options = std::make_shared<SweepOptions>();
  options->spec.measuresPeaks = false;  // at every point anew, unless somebody asks for it
  CLI::App* verb =
      addVerb(app, context, "sweep",
              "Measure a pipeline at many sizes, and find the break-even size, above which fusing is faster.", options,
              sweepSizes, sweepSchema);
  verb->add_option("--over", options->axes,
                   "Axis: M=128:16384:x2, M=128:1024:+128, M=512,1024,4096, ranks=1,2,4 or recipe=none,mxfp8. Several "
                   "axes form a grid; break-even points are along the first")
      ->type_name("SYMBOL=SIZES")
      ->allow_extra_args(false)
      ->required();
  addFileOptions(*verb, *options);
  addFusionOptions(*verb, *options);
  verb->get_option("--device")->description("Device to measure on: cpu, reference or cuda[:N]");
  addSpecOptions(*verb, options->spec, SpecGroup::Measuring);
  addSpecOptions(*verb, options->spec, SpecGroup::Peaks);
  addSweepFiles(*verb, *options);
  addOnOption(*verb, options->on,
              "Sweep on another machine over ssh: a host of ~/.ssh/config, or user@host:port. Files are read and "
              "written on this machine");
}

}  // namespace fuseline::cli
