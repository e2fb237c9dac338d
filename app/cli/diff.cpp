// fuseline diff: what two pipelines do not have in common, in their files and in their plans.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/pipeline_options.h"
#include "app/cli/table.h"
#include "app/cli/terminal.h"
#include "app/cli/verbs.h"
#include "core/document/change_text.h"
#include "core/plan/pipeline_difference.h"
#include "core/runtime/pipeline_run.h"
#include "core/support/text.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline::cli {

namespace {

using Change = DocumentChange;

struct DiffOptions : PipelineOptions {
  std::string next;
  bool withView = false;
  bool tellsByExitCode = false;
};

struct Difference : PipelineDifference {
  /// Why the plans cannot be compared; empty: they can.
  std::string plansReason;
};

/// Errors: the file cannot be read as a pipeline. What the pipeline means may be wrong.
Result<OpenedPipeline> open(const DiffOptions& options, const std::string& file, const Context& context) {
  PipelineOptions one = options;
  one.file = file;
  Result<OpenedPipeline> pipeline = inspectPipeline(one, context.registry);
  if (!pipeline) return pipeline.error();
  if (hasErrors(pipeline->loaded.diagnostics))
    return Error{fmt::format("{} cannot be used:\n{}", file, errorText(pipeline->loaded.diagnostics, file))};
  return pipeline;
}

Result<Difference> differenceOf(const DiffOptions& options, const Context& context) {
  const Result<OpenedPipeline> base = open(options, options.file, context);
  if (!base) return base.error();
  const Result<OpenedPipeline> next = open(options, options.next, context);
  if (!next) return next.error();
  Difference difference{pipelineDifference({base->loaded.document, base->analysis},
                                           {next->loaded.document, next->analysis}, {.withView = options.withView}),
                        {}};
  for (const auto& [pipeline, file] : {std::pair(&*base, &options.file), {&*next, &options.next}})
    if (!pipeline->analysis.isRunnable() && difference.plansReason.empty())
      difference.plansReason =
          fmt::format("{} has errors, so there is no plan of it: fuseline validate {}", *file, *file);
  return difference;
}

// ---- For people.

Style styleOf(char mark) { return mark == '+' ? Style::Good : mark == '-' ? Style::Bad : Style::Plain; }

std::string changesText(const std::vector<Change>& changes, bool hasColour) {
  constexpr std::size_t kHang = 6;
  std::string text;
  std::string heading;
  for (const Change& change : changes) {
    std::string own = std::string(sectionName(change.section));
    if (!change.block.empty()) own += " in block " + change.block;
    if (own != heading) text += styled(own, Style::Bold, hasColour) + "\n";
    heading = own;
    text += styled(wrappedLines("  " + changeText(change), kHang), styleOf(markOf(change.kind)), hasColour) + "\n";
  }
  return text;
}

std::string plansText(const Difference& difference, bool hasColour) {
  if (!difference.plansReason.empty()) return difference.plansReason + "\n";
  if (difference.plans.empty()) return "The fused plans have the same steps.\n";
  std::string text;
  for (const PlanListDifference& each : difference.plans) {
    text += styled(fmt::format("fused plan, {}", each.list == "handOvers" ? "hand-overs" : each.list), Style::Bold,
                   hasColour) +
            "\n";
    for (const PlanLine& line : each.lines)
      text +=
          styled(wrappedLines(fmt::format("  {} {}", line.mark, line.text), 4), styleOf(line.mark), hasColour) + "\n";
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

void printText(const Difference& difference, const DiffOptions& options, Context& context) {
  if (difference.changes.empty()) {
    context.out << fmt::format("No difference between {} and {}.\n", options.file, options.next);
    return;
  }
  context.out << changesText(difference.changes, context.hasColour) << "\n" << plansText(difference, context.hasColour);
  if (!difference.figures.empty()) context.out << "\n" << figuresTable(difference.figures, context.hasColour);
}

// ---- For programs.

Json toJson(const Change& change) {
  Json fields = Json::array();
  for (const FieldChange& field : change.fields)
    fields.push_back({{"name", field.name}, {"base", field.base}, {"new", field.next}});
  return {{"section", sectionName(change.section)},
          {"block", change.block},
          {"kind", kindName(change.kind)},
          {"id", change.id},
          {"newId", change.newId},
          {"fields", std::move(fields)}};
}

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

void print(const Difference& difference, const DiffOptions& options, Context& context) {
  if (!options.asJson) return printText(difference, options, context);
  printJson(context, {{"base", options.file},
                      {"new", options.next},
                      {"isSame", difference.changes.empty()},
                      {"changes", listOf(difference.changes)},
                      {"plansReason", difference.plansReason},
                      {"plans", listOf(difference.plans)},
                      {"predicted", listOf(difference.figures)}});
}

Result<int> diff(const DiffOptions& options, Context& context) {
  const Result<Difference> difference = differenceOf(options, context);
  if (!difference) return difference.error();
  print(*difference, options, context);
  const bool differs = options.tellsByExitCode && !difference->changes.empty();
  return differs ? static_cast<int>(ErrorKind::ExpectationNotMet) : 0;
}

}  // namespace

void addDiffVerb(CLI::App& app, Context& context) {
  const auto options = std::make_shared<DiffOptions>();
  CLI::App* verb = addVerb(app, context, "diff", "What changed between two pipelines, and what it does to their plans",
                           options, diff);
  verb->add_option("BASE", options->file, "The pipeline that the other is compared with")
      ->type_name("BASE.fuseline")
      ->required();
  verb->add_option("NEW", options->next, "The other pipeline")->type_name("NEW.fuseline")->required();
  addReadingOptions(*verb, *options);
  addFusionOptions(*verb, *options);
  addRanksOption(*verb, *options);
  verb->add_flag("--view", options->withView, "Also how they are laid out");
  verb->add_flag("--exit-code", options->tellsByExitCode, "Exits 5 where they differ");
  verb->footer(
      "With git:\n"
      "  git difftool --extcmd \"fuseline diff\" -- FILE.fuseline   two versions of a file\n"
      "  echo '*.fuseline diff=fuseline' >> .gitattributes\n"
      "  git config diff.fuseline.textconv \"fuseline fuse --format tree\"   git diff and git log -p show plans\n");
}

}  // namespace fuseline::cli
