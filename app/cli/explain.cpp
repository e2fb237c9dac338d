// fuseline explain: for each op why each fusion did or did not apply, with the fix and the predicted saving.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/pipeline_options.h"
#include "app/cli/terminal.h"
#include "app/cli/verbs.h"
#include "core/fusion/broken_chains.h"
#include "core/fusion/instance_lines.h"
#include "core/fusion/node_name.h"
#include "core/fusion/report_schema.h"
#include "core/plan/memory_forecast.h"
#include "core/runtime/planned_collectives.h"
#include "core/support/output_schema.h"
#include "core/support/visible_text.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline::cli {

namespace {
namespace explain_parts {

struct ExplainOptions : PipelineOptions {
  std::string op;
  bool wantsMemory = false;
};

using Attempts = std::vector<const Attempt*>;

/// Larger gains first; attempts that did not match in full predict none and come last.
auto isMoreUseful(const OpenedPipeline& pipeline) {
  return [&device = pipeline.analysis.report.device](const Attempt* a, const Attempt* b) {
    return gainsMore(*a, *b, device);
  };
}

bool isAt(const Graph& graph, const Attempt& attempt, std::string_view op) {
  return std::ranges::any_of(attempt.nodes, [&](NodeId id) { return graph.node(id).isAt(op); });
}

/// Those of an op that was asked for by name.
Attempts attemptsTouching(const OpenedPipeline& pipeline, std::string_view op) {
  Attempts attempts;
  for (const Attempt& attempt : pipeline.analysis.report.attempts)
    if (isAt(pipeline.graph(), attempt, op)) attempts.push_back(&attempt);
  std::ranges::stable_sort(attempts, isMoreUseful(pipeline));
  return attempts;
}

/// Behind "fix: ".
constexpr std::size_t kFixHang = 5;
/// Behind "✓ ".
constexpr std::size_t kMarkHang = 2;

/// "  ✓ Rule (forward), ...": broken into lines as plain text, then coloured.
void printHead(const Attempt& attempt, const std::string& rest, Style name, Context& context) {
  const bool isFused = attempt.outcome == Outcome::Fused;
  const std::string plain =
      wrappedLines(fmt::format("    {} ({}), {}", attempt.rule->name, passName(attempt.rule->pass), rest), kMarkHang);
  const std::string_view behind = std::string_view(plain).substr(4 + attempt.rule->name.size());
  context.out << fmt::format("  {} {}{}\n",
                             styled(isFused ? "✓" : "·", isFused ? Style::Good : Style::Dim, context.hasColour),
                             styled(attempt.rule->name, name, context.hasColour), behind);
}

void print(const OpenedPipeline& pipeline, const Attempt& attempt, Context& context) {
  const Graph& graph = pipeline.graph();
  const bool isFused = attempt.outcome == Outcome::Fused;
  const std::string ops = isFused ? fmt::format(": {}", idsOf(graph, attempt.nodes, " + ")) : std::string();
  printHead(attempt, std::string(outcomeName(attempt.outcome)) + ops, Style::Bold, context);
  const bool couldBeLonger = isFused && !attempt.repairs.empty();
  if (!isFused || couldBeLonger || !attempt.caveat.empty())
    context.out << wrappedLines("      " + visibleText(attempt.explanation), 0) << '\n';
  for (const Repair& repair : attempt.repairs)
    context.out << wrappedLines("      fix: " + visibleText(repair.label), kFixHang) << '\n';
  if (const std::string request = requestFor(graph, attempt); !request.empty())
    context.out << "      use it: --with " << request << '\n';
  if (!attempt.saving || *attempt.saving == Saving{}) return;
  const std::string gain = gainText(*attempt.saving, attempt.measured.get(), pipeline.analysis.report.device);
  context.out << "      " << styled(gain, Style::Dim, context.hasColour) << '\n';
}

/// What is explained: one op, or every op in order of what its best attempt saves or would save.
struct Section {
  std::string op;
  std::string title;
  Attempts attempts;
  /// Fusions that begin at an earlier op and include this one.
  Attempts partOf;
};

void printPartOf(const Graph& graph, const Attempt& attempt, Context& context) {
  printHead(attempt,
            fmt::format("fused: {}; see {}", idsOf(graph, attempt.nodes, " + "), graph.node(attempt.nodes.front()).id),
            Style::Plain, context);
}

void printSharedReason(const Attempts& attempts, Context& context) {
  const BrokenChains chains = brokenChains(attempts);
  context.out << fmt::format("  · {} rules, {}\n", attempts.size(), outcomeName(Outcome::BrokenChain));
  context.out << wrappedLines(fmt::format("      {}; expected: {}.", visibleText(chains.reason), chains.rulesNeeds), 0)
              << '\n';
}

void printSection(const OpenedPipeline& pipeline, const Section& section, Context& context) {
  context.out << styled(section.title, Style::Bold, context.hasColour) << '\n';
  for (const Attempt* attempt : section.partOf) printPartOf(pipeline.graph(), *attempt, context);
  if (section.attempts.empty() && section.partOf.empty()) context.out << "  No rule begins with this op.\n";
  for (const Attempts& same : groupedByReason(section.attempts))
    same.size() > 1 ? printSharedReason(same, context) : print(pipeline, *same.front(), context);
}

/// By attempt the number of its group. A section of a long fusion's op would have a long key otherwise.
std::vector<std::size_t> groupNumbers(const Graph& graph, const FusionReport& report) {
  std::vector<std::size_t> numbers(report.attempts.size());
  const InstanceGroups groups = attemptGroups(graph, report.attempts, report.device);
  for (std::size_t number = 0; number < groups.size(); ++number)
    for (const std::size_t attempt : groups[number]) numbers[attempt] = number;
  return numbers;
}

/// Sections of the same op in instances of a block, once.
std::vector<Section> foldSections(const OpenedPipeline& pipeline, const std::vector<Section>& sections) {
  const FusionReport& report = pipeline.analysis.report;
  const InstanceNames names(pipeline.graph());
  const std::vector<std::size_t> numbers = groupNumbers(pipeline.graph(), report);
  std::vector<std::string> keys;
  for (const Section& section : sections) {
    std::string& key = keys.emplace_back(names.shared(section.title).text);
    for (const Attempts* attempts : {&section.attempts, &section.partOf})
      for (const Attempt* attempt : *attempts)
        key += fmt::format("\n{}", numbers[static_cast<std::size_t>(attempt - report.attempts.data())]);
  }
  std::vector<Section> folded;
  for (const std::vector<std::size_t>& group : groupsOf(keys)) {
    Section& section = folded.emplace_back(sections[group.front()]);
    if (group.size() > 1)
      section.title +=
          fmt::format(", in each of {} instances of block {}", group.size(), names.shared(section.op).block);
  }
  return folded;
}

std::vector<Section> allSections(const OpenedPipeline& pipeline) {
  std::vector<Section> sections;
  const Graph& graph = pipeline.graph();
  for (const Node& node : graph.nodes())
    sections.push_back({.op = node.id, .title = fmt::format("{} ({})", node.id, node.operation->name)});
  const auto at = [&](NodeId id) -> Section& { return sections[static_cast<std::size_t>(id)]; };
  for (const Attempt& attempt : pipeline.analysis.report.attempts) {
    at(attempt.nodes.front()).attempts.push_back(&attempt);
    if (attempt.outcome != Outcome::Fused) continue;
    for (const NodeId id : std::span(attempt.nodes).subspan(1)) at(id).partOf.push_back(&attempt);
  }
  for (Section& section : sections) std::ranges::stable_sort(section.attempts, isMoreUseful(pipeline));
  std::ranges::stable_sort(sections, [&](const Section& a, const Section& b) {
    if (a.attempts.empty() || b.attempts.empty()) return !a.attempts.empty() && b.attempts.empty();
    return isMoreUseful(pipeline)(a.attempts.front(), b.attempts.front());
  });
  return sections;
}

/// The collectives of an op; all, where none was asked for.
std::string communicationAt(const OpenedPipeline& pipeline, const std::string& op) {
  const int ranks = pipeline.analysis.ranks;
  std::vector<PlannedCollective> collectives =
      plannedCollectives(*pipeline.analysis.fusedPlan, pipeline.graph(), ranks);
  if (!op.empty()) std::erase_if(collectives, [&](const PlannedCollective& each) { return each.op != op; });
  return wrappedLines(toString(collectives, ranks), 2);
}

Error unknownOp(const Graph& graph, const std::string& op) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) names.push_back(node.id);
  return {fmt::format("explain {}: the pipeline has no op of this name. It has: {}.", op, fmt::join(names, ", ")),
          ErrorKind::Usage};
}

Result<std::vector<Section>> sectionsFor(const OpenedPipeline& pipeline, const std::string& op) {
  if (op.empty()) return allSections(pipeline);
  const auto& nodes = pipeline.graph().nodes();
  const bool isKnown = std::ranges::any_of(nodes, [&](const Node& node) { return node.isAt(op); });
  if (!isKnown) return unknownOp(pipeline.graph(), op);
  return std::vector<Section>{{.op = op, .title = op, .attempts = attemptsTouching(pipeline, op)}};
}

/// The attempts as `fuseline fuse` writes them.
Json toJson(const OpenedPipeline& pipeline, const std::vector<Section>& sections) {
  const FusionReport& report = pipeline.analysis.report;
  const Json written = toJson(pipeline.graph(), report)["attempts"];
  Json ops = Json::array();
  for (const Section& section : sections) {
    Json attempts = Json::array();
    for (const Attempt* attempt : section.attempts)
      attempts.push_back(written[static_cast<std::size_t>(attempt - report.attempts.data())]);
    ops.push_back({{"op", section.op}, {"attempts", attempts}});
  }
  return {{"ops", ops}};
}

Result<int> explainMemory(const OpenedPipeline& pipeline, const ExplainOptions& options, Context& context) {
  const MemoryForecast forecast = memoryForecast(pipeline.loaded.document, pipeline.options, pipeline.analysis);
  if (options.asJson)
    printJson(context, toJson(forecast));
  else
    context.out << toString(forecast);
  return 0;
}

Result<int> explain(const ExplainOptions& options, Context& context) {
  Result<OpenedPipeline> pipeline = openPipeline(options, context);
  if (!pipeline) return pipeline.error();
  if (options.wantsMemory) return explainMemory(*pipeline, options, context);
  Result<std::vector<Section>> sections = sectionsFor(*pipeline, options.op);
  if (!sections) return sections.error();
  if (options.asJson)
    printJson(context, toJson(*pipeline, *sections));
  else
    for (const Section& section : foldSections(*pipeline, *sections)) printSection(*pipeline, section, context);
  if (!options.asJson) context.out << communicationAt(*pipeline, options.op);
  return 0;
}

Json explainSchema() {
  const Json attempts =
      schema::object({{"ops", schema::list(schema::object({{"op", schema::text("Where the attempts begin.")},
                                                           {"attempts", schema::list(attemptSchema())}}))}});
  return schema::oneOf({attempts, memoryForecastSchema()});
}

}  // namespace explain_parts
}  // namespace

void addExplainVerb(CLI::App& app, Context& context) {
  using namespace explain_parts;
  const auto options = std::make_shared<ExplainOptions>();
  CLI::App* verb = addVerb(app, context, "explain", "Explain why each fusion did or did not apply, and what it saves.",
                           options, explain, explainSchema);
  addFileOptions(*verb, *options);
  addFusionOptions(*verb, *options);
  addOneRankOption(*verb, *options);
  CLI::Option* const op = verb->add_option("OP", options->op, "Show only fusions that involve this op");
  verb->add_flag("--memory", options->wantsMemory,
                 "Predict memory by layer, and what recipes, offloading and recomputation would change")
      ->excludes(op);
}

}  // namespace fuseline::cli
