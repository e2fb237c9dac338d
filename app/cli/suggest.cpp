// fuseline suggest: edits after which the plan needs less, each of them tried.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/output_file.h"
#include "app/cli/pipeline_options.h"
#include "app/cli/terminal.h"
#include "app/cli/verbs.h"
#include "core/document/file_format.h"
#include "core/edit/apply_edit.h"
#include "core/plan/suggestions.h"
#include "core/runtime/planned_collectives.h"
#include "core/support/output_schema.h"
#include "core/support/visible_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline::cli {

namespace {
namespace suggest_parts {

struct SuggestOptions : PipelineOptions {
  int apply = 0;  // counted from 1; 0: none
  std::string output;
  bool replaces = false;
};

/// Behind "  12. ".
constexpr std::size_t kIndent = 6;

void printIndented(std::string_view text, Context& context) {
  const std::string indent(kIndent, ' ');
  context.out << wrappedLines(indent + std::string(text), 0) << '\n';
}

/// More is for `fuseline diff`.
constexpr std::size_t kMostLines = 6;

/// "backward - GELU (act)"
std::vector<std::string> planTexts(const std::vector<PlanListDifference>& plans) {
  std::vector<std::string> texts;
  for (const PlanListDifference& list : plans)
    for (const PlanLine& line : list.lines)
      if (line.mark != ' ') texts.push_back(fmt::format("{} {} {}", list.list, line.mark, line.text));
  return texts;
}

void printPlans(const std::vector<PlanListDifference>& plans, Context& context) {
  std::vector<std::string> texts = planTexts(plans);
  if (texts.size() > kMostLines + 1) {
    const std::size_t left = texts.size() - kMostLines;
    texts.resize(kMostLines);
    texts.push_back(fmt::format("and {} more lines of the plans", left));
  }
  for (const std::string& text : texts) context.out << styled("      " + text, Style::Dim, context.hasColour) << '\n';
}

void print(const Suggestion& suggestion, std::size_t number, const DeviceModel& device, Context& context) {
  const Proposal& proposal = suggestion.proposal;
  context.out << fmt::format("{:4}. {}\n", number,
                             styled(visibleText(proposal.repair.label), Style::Bold, context.hasColour));
  printIndented(fmt::format("{}", fmt::join(effectsOf(suggestion, device), ", ")), context);
  if (!proposal.caution.empty()) printIndented(proposal.caution, context);
  printPlans(suggestion.plans, context);
}

std::string_view headOf(SuggestionKind kind) {
  return kind == SuggestionKind::SameResults ? "Same results"
                                             : "Changes behavior: results, inputs, or effects on the caller's tensors";
}

void printText(const std::vector<Suggestion>& found, const DeviceModel& device, Context& context) {
  if (found.empty()) context.out << "No suggestions: no edit that was tried saves time, traffic or memory.\n";
  for (std::size_t i = 0; i < found.size(); ++i) {
    const SuggestionKind kind = found[i].proposal.kind;
    if (i == 0 || found[i - 1].proposal.kind != kind)
      context.out << styled(headOf(kind), Style::Bold, context.hasColour) << '\n';
    print(found[i], i + 1, device, context);
  }
  if (!found.empty())
    context.err << "Savings are predicted from the minimum traffic of each step. `fuseline run` measures.\n";
}

void printAll(const std::vector<Suggestion>& found, const SuggestOptions& options, const DeviceModel& device,
              Context& context) {
  if (!options.asJson) return printText(found, device, context);
  Json list = Json::array();
  for (const Suggestion& suggestion : found) list.push_back(toJson(suggestion, device));
  printJson(context, {{"suggestions", list}});
}

/// An estimate of the communication of several ranks; empty: there is one.
std::string communicationText(const Analysis& analysis) {
  if (!analysis.fusedPlan) return {};
  const std::string text = estimateText(plannedCollectives(*analysis.fusedPlan, analysis.graph(), analysis.ranks));
  return text.empty() ? text : wrappedLines(text, 0) + "\n";
}

Result<int> applyOne(const SuggestOptions& options, PipelineDocument document, const std::vector<Suggestion>& found,
                     Context& context) {
  if (options.apply > static_cast<int>(found.size()))
    return Error{fmt::format("--apply {}: there {} {} suggestion{}. `fuseline suggest FILE` lists all.", options.apply,
                             found.size() == 1 ? "is" : "are", found.size(), found.size() == 1 ? "" : "s"),
                 ErrorKind::Usage};
  const Repair& repair = found[static_cast<std::size_t>(options.apply - 1)].proposal.repair;
  if (const Result<Edit> applied = applyEdit(document, repair.edit); !applied) return applied.error();
  if (options.output.empty())
    context.out << serialize(document);
  else if (const Result<void> saved = saveDocument(document, options.output); !saved)
    return saved.error();
  context.err << "Applied: " << visibleText(repair.label) << '\n';
  return 0;
}

Result<int> suggest(const SuggestOptions& options, Context& context) {
  if (!options.output.empty() && options.apply == 0)
    return Error{"-o writes the changed pipeline, so it needs a suggestion: add --apply N.", ErrorKind::Usage};
  if (Result<void> usable = checkEdited(options, options.output, options.replaces); !usable) return usable.error();
  Result<OpenedPipeline> pipeline = openPipeline(options, context);
  if (!pipeline) return pipeline.error();
  keepSymbols(*pipeline);
  const std::vector<Suggestion> found = suggestions(pipeline->loaded.document, pipeline->options);
  if (options.apply == 0) {
    printAll(found, options, pipeline->options.gains.device, context);
    if (!options.asJson) context.out << communicationText(pipeline->analysis);
    return 0;
  }
  return applyOne(options, std::move(pipeline->loaded.document), found, context);
}

Json suggestSchema() { return schema::object({{"suggestions", schema::list(suggestionSchema())}}); }

}  // namespace suggest_parts
}  // namespace

void addSuggestVerb(CLI::App& app, Context& context) {
  using namespace suggest_parts;
  const auto options = std::make_shared<SuggestOptions>();
  CLI::App* verb =
      addVerb(app, context, "suggest", "Suggest edits that reduce time, traffic or memory; each was tried on a copy.",
              options, suggest, suggestSchema);
  addFileOptions(*verb, *options);
  addFusionOptions(*verb, *options);
  addOneRankOption(*verb, *options);
  CLI::Option* apply =
      verb->add_option("--apply", options->apply, "Apply suggestion N, counted from 1, and write the pipeline")
          ->type_name("N")
          ->check(CLI::Range(1, static_cast<int>(kMostTried)));
  verb->get_option("--json")->excludes(apply);
  verb->add_option("-o,--output", options->output, "File for the changed pipeline (default: standard output)")
      ->type_name("FILE");
  verb->add_flag("--force", options->replaces, "Overwrite an existing file");
}

}  // namespace fuseline::cli
