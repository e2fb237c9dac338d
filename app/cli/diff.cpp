// fuseline diff: what two pipelines do not have in common, in their files and in their plans.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/change_lines.h"
#include "app/cli/comparison_table.h"
#include "app/cli/interrupt.h"
#include "app/cli/measuring_options.h"
#include "app/cli/table.h"
#include "app/cli/terminal.h"
#include "app/cli/verbs.h"
#include "core/plan/pipeline_difference.h"
#include "core/runtime/pipeline_run.h"
#include "core/support/output_schema.h"
#include "core/support/text.h"
#include "core/support/visible_text.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline::cli {

namespace {
namespace diff_parts {

struct DiffOptions : MeasuringOptions {
  std::string next;
  std::vector<std::string> gates;
  bool measures = false;
  bool withView = false;
  bool tellsByExitCode = false;
};

struct Difference : PipelineDifference {
  /// Why the plans cannot be compared; empty: they can.
  std::string plansReason;
  std::optional<RunComparison> measured;  // nothing: it was not asked for
  bool isCancelled = false;               // while it was measured
};

/// Errors: the file cannot be read as a pipeline. The pipeline may be invalid.
Result<OpenedPipeline> open(const DiffOptions& options, const std::string& file, const Context& context) {
  PipelineOptions one = options;
  one.file = file;
  Result<OpenedPipeline> pipeline = inspectPipeline(one, context.registry);
  if (!pipeline) return pipeline.error();
  if (hasErrors(pipeline->loaded.diagnostics))
    return Error{fmt::format("{} cannot be used:\n{}", file, errorText(pipeline->loaded.diagnostics, file))};
  return pipeline;
}

// ---- Both pipelines, measured interleaved.

std::string nameOfPipeline(const std::string& file) { return std::filesystem::path(file).stem().string(); }

Result<std::unique_ptr<PipelineRun>> prepared(const OpenedPipeline& pipeline, const std::string& file,
                                              PipelineRunOptions options, const Context& context) {
  if (!pipeline.analysis.isRunnable())
    return Error{fmt::format("--measure: {} cannot run:\n{}", file, errorText(allDiagnostics(pipeline), file))};
  options.gains = pipeline.options.gains;
  return PipelineRun::prepare(pipeline.loaded, nameOfPipeline(file), std::move(options), context.registry);
}

Result<void> measureBoth(const DiffOptions& options, const OpenedPipeline& base, const OpenedPipeline& next,
                         Difference& difference, Context& context, const std::stop_token& cancel) {
  Result<PipelineRunOptions> settings = pipelineRunOptions(options);
  if (!settings) return settings.error();
  settings->variants = {"fused"};
  settings->settings.measuresPeaks = false;
  const auto baseRun = prepared(base, options.file, *settings, context);
  if (!baseRun) return baseRun.error();
  settings->heldBytes = (*baseRun)->heldBytes();
  const auto nextRun = prepared(next, options.next, *settings, context);
  if (!nextRun) return nextRun.error();
  printNotes(base, options.file, context);
  printNotes(next, options.next, context);
  ProgressBar bar(!options.isQuiet);
  const auto records = PipelineRun::measureTogether(
      std::array{baseRun->get(), nextRun->get()},
      [&](std::string_view stage, int done, int total) { bar.show(stage, done, total); }, cancel);
  if (!records) return records.error();
  Result<RunComparison> measured = compareRuns(records->front(), records->back());
  if (!measured) return measured.error();
  difference.measured = std::move(*measured);
  difference.isCancelled = std::ranges::any_of(*records, &RunRecord::isPartial);
  return {};
}

Result<Difference> differenceOf(const DiffOptions& options, Context& context, const std::stop_token& cancel) {
  const Result<OpenedPipeline> base = open(options, options.file, context);
  if (!base) return base.error();
  const Result<OpenedPipeline> next = open(options, options.next, context);
  if (!next) return next.error();
  Difference difference{pipelineDifference({base->loaded.document, base->analysis},
                                           {next->loaded.document, next->analysis}, {.withView = options.withView}),
                        {},
                        {},
                        false};
  for (const auto& [pipeline, file] : {std::pair(&*base, &options.file), {&*next, &options.next}})
    if (!pipeline->analysis.isRunnable() && difference.plansReason.empty())
      difference.plansReason =
          fmt::format("{} has errors, so it has no plan. `fuseline validate {}` lists them.", *file, *file);
  if (!options.measures) return difference;
  if (Result<void> measured = measureBoth(options, *base, *next, difference, context, cancel); !measured)
    return measured.error();
  return difference;
}

// ---- For people.

std::string plansText(const Difference& difference, bool hasColour) {
  if (!difference.plansReason.empty()) return difference.plansReason + "\n";
  if (difference.plans.empty()) return "The fused plans have the same steps.\n";
  std::string text;
  for (const PlanListDifference& each : difference.plans) {
    text += styled(fmt::format("fused plan, {}", each.list == "fusedQuantizations" ? "quantized outputs" : each.list),
                   Style::Bold, hasColour) +
            "\n";
    for (const PlanLine& line : each.lines)
      text += styled(wrappedLines(fmt::format("  {} {}", line.mark, visibleText(line.text)), 4), styleOf(line.mark),
                     hasColour) +
              "\n";
  }
  return text;
}

std::string figuresTable(const std::vector<PlanFigure>& figures, bool hasColour) {
  if (figures.empty()) return "";
  Table table({{"predicted", Align::Left}, {"base"}, {"new"}, {"change"}});
  std::string variant;
  for (const PlanFigure& figure : figures) {
    if (figure.variant != variant) table.addHeading(fmt::format("{} plan", figure.variant));
    variant = figure.variant;
    const auto value = [&](std::int64_t number) {
      return figure.isBytes ? formatBytes(number) : fmt::format("{}", number);
    };
    const bool isSame = figure.base == figure.next;
    const double change = 100.0 * (static_cast<double>(figure.next) / static_cast<double>(figure.base) - 1.0);
    const std::string changed = isSame ? "same" : figure.base == 0 ? "" : fmt::format("{:+.1f} %", change);
    table.addRow({fmt::format("  {}", figure.title),
                  value(figure.base),
                  value(figure.next),
                  {changed, isSame ? Style::Dim : Style::Plain}});
  }
  return table.toString(hasColour);
}

std::string measuredText(const RunComparison& measured, bool hasColour) {
  return comparisonTable(measured, hasColour) + "\n" + newAndGoneText(measured, "") +
         wrappedLines(comparisonLegend(measured), 0);
}

void printText(const Difference& difference, const DiffOptions& options, Context& context) {
  if (difference.changes.empty())
    context.out << fmt::format("No difference between {} and {}.\n", options.file, options.next);
  else
    context.out << changesText(difference.changes, context.hasColour) << "\n"
                << plansText(difference, context.hasColour);
  if (!difference.changes.empty() && !difference.figures.empty())
    context.out << "\n" << figuresTable(difference.figures, context.hasColour);
  if (difference.measured) context.out << "\n" << measuredText(*difference.measured, context.hasColour);
}

// ---- For programs.

Json toJson(const PlanListDifference& list) {
  Json lines = Json::array();
  for (const PlanLine& line : list.lines) lines.push_back({{"mark", std::string(1, line.mark)}, {"text", line.text}});
  return {{"list", list.list}, {"lines", std::move(lines)}};
}

Json toJson(const PlanFigure& figure) {
  return {{"variant", figure.variant}, {"name", figure.name}, {"base", figure.base}, {"new", figure.next}};
}

template <class T>
Json listOf(const std::vector<T>& items) {
  Json list = Json::array();
  for (const T& item : items) list.push_back(toJson(item));
  return list;
}

void print(const Difference& difference, const std::vector<GateReport>& gates, const DiffOptions& options,
           Context& context) {
  if (!options.asJson) {
    printText(difference, options, context);
    context.out << toString(gates);
    return;
  }
  printJson(context, {{"base", options.file},
                      {"new", options.next},
                      {"isSame", difference.changes.empty()},
                      {"changes", changesJson(difference.changes)},
                      {"plansReason", difference.plansReason},
                      {"plans", listOf(difference.plans)},
                      {"predicted", listOf(difference.figures)},
                      {"measured", difference.measured ? comparisonJson(*difference.measured) : Json()},
                      {"gates", toJson(gates)}});
}

/// Fused plans only are measured.
Result<void> checkMeasured(const Gate& gate) {
  if (gate.metric != "unfused" && gate.metric != "speedup") return {};
  return Error{fmt::format("--fail-if {}: diff measures fused plans only; expected median, peak, saved, launches or "
                           "step. For others use `fuseline run` and `fuseline compare`.",
                           gate.text),
               ErrorKind::Usage};
}

Result<std::vector<Gate>> gatesOf(const DiffOptions& options) {
  if (!options.gates.empty() && !options.measures)
    return Error{"--fail-if needs measurements: add --measure.", ErrorKind::Usage};
  Result<std::vector<Gate>> gates = parseGates(options.gates);
  if (!gates) return gates;
  for (const Gate& gate : *gates)
    if (Result<void> checked = checkMeasured(gate); !checked) return checked.error();
  return gates;
}

Result<void> checkOptions(const DiffOptions& options) {
  if (!options.measuredFiles.empty())
    return Error{"--measured: a run belongs to one pipeline, but diff compares two. Remove --measured.",
                 ErrorKind::Usage};
  if (options.measures && options.ranks > 1)
    return Error{
        fmt::format("--ranks {}: --measure runs the plan of one rank, not the plan shown. Remove --measure or --ranks.",
                    options.ranks),
        ErrorKind::Usage};
  return {};
}

Result<int> diff(const DiffOptions& options, Context& context) {
  if (Result<void> checked = checkOptions(options); !checked) return checked.error();
  const Result<std::vector<Gate>> gates = gatesOf(options);
  if (!gates) return gates.error();
  const InterruptWatch interrupt;  // before any thread of a backend exists, so that all inherit the blocked signals
  const Result<Difference> difference = differenceOf(options, context, interrupt.token());
  if (!difference) return difference.error();
  Result<std::vector<GateReport>> reports = std::vector<GateReport>();
  if (difference->measured && !difference->isCancelled) reports = checkGates(*gates, *difference->measured);
  print(*difference, reports ? *reports : std::vector<GateReport>(), options, context);
  if (difference->isCancelled) return Error{"The measurement was cancelled.", ErrorKind::RunFailed};
  if (!reports) return reports.error();
  const bool differs = options.tellsByExitCode && !difference->changes.empty();
  return differs ? Result<int>(static_cast<int>(ErrorKind::ExpectationNotMet)) : exitCodeOf(*reports);
}

Json diffSchema() {
  const Json planList =
      schema::object({{"list", schema::choice({"forward", "backward", "fusedQuantizations"})},
                      {"lines", schema::list(schema::object({{"mark", schema::choice({" ", "-", "+"})},
                                                             {"text", schema::text("Entry of the list.")}}))}});
  const Json figure = schema::object({{"variant", schema::choice({"unfused", "fused"})},
                                      {"name", schema::choice({"peakBytes", "savedForBackwardBytes", "launches"})},
                                      {"base", schema::integer("Value for the base's plan.")},
                                      {"new", schema::integer("Value for the new plan.")}});
  return schema::object({{"base", schema::text("File, as given on the command line.")},
                         {"new", schema::text("File, as given on the command line.")},
                         {"isSame", schema::flag("Both documents are equivalent.")},
                         {"changes", changesSchema()},
                         {"plansReason", schema::text("Reason why the plans cannot be compared; empty: they can.")},
                         {"plans", schema::list(planList)},
                         {"predicted", schema::list(figure)},
                         {"measured", schema::orNull(schema::object(comparisonFields()))},
                         {"gates", gatesSchema()}});
}

}  // namespace diff_parts
}  // namespace

void addDiffVerb(CLI::App& app, Context& context) {
  using namespace diff_parts;
  const auto options = std::make_shared<DiffOptions>();
  CLI::App* verb = addVerb(app, context, "diff",
                           "Show the changes between two pipelines, and their effect on plans, memory and steps.",
                           options, diff, diffSchema);
  verb->add_option("BASE", options->file, "Pipeline to compare with")->type_name("BASE.fuseline")->required();
  verb->add_option("NEW", options->next, "Changed pipeline")->type_name("NEW.fuseline")->required();
  addReadingOptions(*verb, *options);
  addFusionOptions(*verb, *options);
  verb->get_option("--device")
      ->description("cpu, reference or cuda[:N]; without --measure also an architecture to plan for, such as sm_90");
  addRanksOption(*verb, *options);
  verb->add_flag("--measure", options->measures,
                 "Run the fused plans of the two pipelines interleaved, so that background load affects both equally");
  verb->add_option("--fail-if", options->gates,
                   "With --measure: exit with code 5 if a condition holds, such as \"median>+5%\". Metrics: median, "
                   "peak (memory), saved (bytes kept for backward), launches, step (time of any step). Changes that "
                   "are not statistically significant never fail")
      ->type_name("GATE")
      ->allow_extra_args(false);
  addSpecOptions(*verb, options->spec, SpecGroup::Measuring);
  verb->add_flag("--view", options->withView, "Also show changes of the layout");
  verb->add_flag("--exit-code", options->tellsByExitCode, "Exit with code 5 if the pipelines differ");
  verb->footer(
      "Examples:\n"
      "  fuseline diff old.fuseline new.fuseline\n"
      "  fuseline diff old.fuseline new.fuseline --measure --fail-if \"median>+5%\"\n\n"
      "With git:\n"
      "  git difftool --extcmd \"fuseline diff\" -- FILE.fuseline   # two versions of a file\n"
      "  echo '*.fuseline diff=fuseline' >> .gitattributes\n"
      "  git config diff.fuseline.textconv \"fuseline fuse --format tree\"   # git diff and git log -p show plans");
}

}  // namespace fuseline::cli
