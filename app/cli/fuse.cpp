// fuseline fuse: the forward and the backward plan, and every attempt with its reason.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/annotations.h"
#include "app/cli/pipeline_options.h"
#include "app/cli/terminal.h"
#include "app/cli/verbs.h"
#include "core/fusion/fusion_stages.h"
#include "core/fusion/plan_difference.h"
#include "core/fusion/report_schema.h"
#include "core/plan/memory_profile.h"
#include "core/runtime/planned_collectives.h"
#include "core/support/json_fields.h"
#include "core/support/read_file.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline::cli {

namespace {
namespace fuse_parts {

/// Indentation of attempts, after their bullets.
constexpr std::size_t kHang = 6;

struct FuseOptions : PipelineOptions {
  std::string format = "tree";
  std::string expectedFile;
  std::string stage;
  bool annotates = false;
};

// Results of each pass: the graph, the lists of entries, the plan, its memory, the programs of its elementwise ops.

std::string forwardAfter(const OpenedPipeline& pipeline, FusionStage stage) {
  return toText(pipeline.graph(), reportAfter(pipeline.analysis.report, stage).forward);
}

std::string programsText(const OpenedPipeline& pipeline) {
  std::string text;
  for (const Step& step : pipeline.analysis.fusedPlan->steps) {
    if (step.isView) continue;
    const ElementwiseProgram program = composeProgram(pipeline.graph(), step);
    if (!program.code.empty()) text += fmt::format("{} {}\n{}", phaseName(step.phase), step.name, toString(program));
  }
  return text;
}

std::string memoryText(const OpenedPipeline& pipeline) {
  const Plan& plan = *pipeline.analysis.fusedPlan;
  return toString(memoryProfile(plan), plan, pipeline.graph());
}

struct Stage {
  const char* name;
  std::string (*text)(const OpenedPipeline&);
};

constexpr std::array kStages = {
    Stage{"lowered", [](const OpenedPipeline& p) { return toString(p.graph()); }},
    Stage{"joint", [](const OpenedPipeline& p) { return forwardAfter(p, FusionStage::Joint); }},
    Stage{"forward", [](const OpenedPipeline& p) { return forwardAfter(p, FusionStage::Forward); }},
    Stage{"backward", [](const OpenedPipeline& p) { return toText(p.graph(), p.analysis.report.backward); }},
    Stage{"plan", [](const OpenedPipeline& p) { return toString(*p.analysis.fusedPlan); }},
    Stage{"memory", memoryText},
    Stage{"programs", programsText},
};

std::vector<std::string> stageNames() {
  std::vector<std::string> names;
  for (const Stage& stage : kStages) names.emplace_back(stage.name);
  return names;
}

std::string stageText(const OpenedPipeline& pipeline, const std::string& name) {
  return std::ranges::find(kStages, name, &Stage::name)->text(pipeline);
}

std::vector<PlannedCollective> collectivesOf(const OpenedPipeline& pipeline) {
  return plannedCollectives(*pipeline.analysis.fusedPlan, pipeline.graph(), pipeline.analysis.ranks);
}

std::string communicationText(const OpenedPipeline& pipeline) {
  const std::string text = toString(collectivesOf(pipeline), pipeline.analysis.ranks);
  return text.empty() ? text : "\n" + wrappedLines(text, 2);
}

Json jsonOf(const OpenedPipeline& pipeline) {
  Json json = toJson(pipeline.graph(), pipeline.analysis.report);
  json["communication"] = toJson(collectivesOf(pipeline));
  return json;
}

Json fuseSchema() {
  Json schema = fusionSchema();
  schema["properties"]["communication"] = plannedCollectivesSchema();
  schema["required"].push_back("communication");
  return schema;
}

void print(const OpenedPipeline& pipeline, const FuseOptions& options, Context& context) {
  const Graph& graph = pipeline.graph();
  const FusionReport& report = pipeline.analysis.report;
  if (!options.stage.empty())
    context.out << stageText(pipeline, options.stage);
  else if (options.asJson || options.format == "json")
    printJson(context, jsonOf(pipeline));
  else if (options.format == "dot")
    context.out << toDot(graph, report);
  else if (options.format == "plan")
    context.out << planTree(graph, report) << communicationText(pipeline);
  else
    context.out << wrappedLines(toTree(graph, report), kHang) << communicationText(pipeline);
}

Result<Json> readExpected(const std::string& path) {
  const Result<std::string> text = readWholeFile(path, {.what = "plan"});
  if (!text) return Error{fmt::format("--expect: {}", text.error().message)};
  Result<Json> json = parseJson(*text);
  if (!json) return Error{fmt::format("--expect {}: {}", path, json.error().message)};
  return json;
}

Result<int> checkExpected(const OpenedPipeline& pipeline, const FuseOptions& options, Context& context) {
  Result<Json> expected = readExpected(options.expectedFile);
  if (!expected) return expected.error();
  const Result<std::vector<PlanListDifference>> difference =
      planDifference(*expected, toJson(pipeline.graph(), pipeline.analysis.report));
  if (!difference)
    return Error{fmt::format("--expect {}: {} Expected a plan that `fuseline fuse --json` printed.",
                             options.expectedFile, difference.error().message)};
  if (difference->empty()) return 0;
  context.err << toString(*difference);
  if (options.annotates)
    context.commands << githubAnnotation(
        {.file = options.file,
         .message = fmt::format("The plan is not the one in {} (- expected, + now):\n{}", options.expectedFile,
                                toString(*difference))});
  return Error{fmt::format("The plan of {} differs from {} (- expected, + now). If that is intended, write the file "
                           "again with --format json.",
                           options.file, options.expectedFile),
               ErrorKind::ExpectationNotMet};
}

Result<int> showPlan(const FuseOptions& options, Context& context) {
  if (options.annotates && (options.format == "json" || options.format == "dot"))
    return Error{
        fmt::format("--annotate: its lines would break the output of --format {}. Use --format plan.", options.format),
        ErrorKind::Usage};
  Result<OpenedPipeline> pipeline = openPipeline(options, context);
  if (!pipeline) return pipeline.error();
  if (Verdict expands = verifyExpansion(pipeline->graph(), pipeline->analysis.report); !expands)
    return Error{fmt::format("The fused plan does not expand to the pipeline: {}", expands.reason()),
                 ErrorKind::RunFailed};
  print(*pipeline, options, context);
  return options.expectedFile.empty() ? Result<int>(0) : checkExpected(*pipeline, options, context);
}

}  // namespace fuse_parts
}  // namespace

void addFuseVerb(CLI::App& app, Context& context) {
  using namespace fuse_parts;
  const auto options = std::make_shared<FuseOptions>();
  CLI::App* verb =
      addVerb(app, context, "fuse", "Show the forward and backward plan, and why each fusion did or did not apply.",
              options, showPlan, fuseSchema);
  addFileOptions(*verb, *options);
  addFusionOptions(*verb, *options);
  addOneRankOption(*verb, *options);
  CLI::Option* format =
      verb->add_option("--format", options->format, "tree (the plan and every fusion tried), plan, json or dot")
          ->check(CLI::IsMember({"tree", "plan", "json", "dot"}))
          ->capture_default_str();
  verb->add_option("--stage", options->stage,
                   "Print the result of one stage: " + fmt::format("{}", fmt::join(stageNames(), ", ")))
      ->check(CLI::IsMember(stageNames()))
      ->excludes(format)
      ->excludes(verb->get_option("--json"));
  verb->add_option("--expect", options->expectedFile, "Exit with code 5 if the plan differs from this file")
      ->type_name("PLAN.json");
  addAnnotateOption(*verb, options->annotates);
}

}  // namespace fuseline::cli
