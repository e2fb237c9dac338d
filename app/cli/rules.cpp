// fuseline rules: the rule set, in the order in which rules are tried, and what each did in a pipeline.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/pipeline_options.h"
#include "app/cli/rule_table.h"
#include "app/cli/table.h"
#include "app/cli/verbs.h"
#include "core/fusion/rule_text.h"
#include "core/support/output_schema.h"
#include "core/support/text.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline::cli {

namespace {
namespace rules_parts {

struct RulesOptions : PipelineOptions {
  std::string name;
};

std::string_view repeatName(Repeat repeat) {
  switch (repeat) {
    case Repeat::Once: return "once";
    case Repeat::Optional: return "optional";
    case Repeat::OneOrMore: return "oneOrMore";
    case Repeat::ZeroOrMore: return "zeroOrMore";
  }
  return "";
}

/// use: null where no pipeline was named.
Json toJson(const FusionRule& rule, Json use) {
  Json chain = Json::array();
  for (const ChainStep& step : rule.chain)
    chain.push_back({{"role", step.role},
                     {"description", step.description()},
                     {"operations", step.operations},
                     {"repeat", repeatName(step.repeat)},
                     {"follows", step.follows}});
  Json conditions = Json::array();
  for (const Condition& condition : rule.conditions) conditions.push_back(condition.sentence);
  return {{"name", rule.name},
          {"pass", passName(rule.pass)},
          {"origin", originName(rule.origin)},
          {"summary", rule.summary},
          {"chain", chain},
          {"conditions", conditions},
          {"kernel", rule.becomes},
          {"hardware", rule.hardware ? toString(*rule.hardware) : ""},
          {"requestReason", rule.price},
          {"use", std::move(use)}};
}

void printList(Context& context) {
  Table table({{"rule", Align::Left}, {"origin", Align::Left}, {"pattern", Align::Left}});
  std::string pass;
  for (const FusionRule* rule : builtinRules().all()) {
    const std::string own = listName(rule->pass);
    if (own != pass) table.addHeading(own);
    pass = own;
    table.addRow({"  " + rule->name, std::string(originName(rule->origin)), patternText(*rule)});
  }
  context.out << table.toString(context.hasColour);
}

void printDetails(const FusionRule& rule, Context& context) {
  context.out << styled(rule.name, Style::Bold, context.hasColour)
              << fmt::format("  ({} pass, origin {})\n", passName(rule.pass), originName(rule.origin)) << rule.summary
              << fmt::format("\n\npattern    {}\nkernel     {}\n", patternText(rule), rule.becomes);
  if (rule.hardware) context.out << fmt::format("hardware   A GPU of {}.\n", toString(*rule.hardware));
  if (!rule.price.empty())
    context.out << fmt::format("on request {} Used on request only: --with {}.\n", rule.price, rule.name);
  if (rule.conditions.empty()) context.out << "conditions none\n";
  for (const Condition& condition : rule.conditions) context.out << "condition  " << condition.sentence << '\n';
}

Error unknownRule(const std::string& name) {
  std::vector<std::string> names;
  for (const FusionRule* rule : builtinRules().all()) names.push_back(rule->name);
  return unknownName("rules", "rule", name, names);
}

/// The rules that were asked for; all without a name.
std::vector<const FusionRule*> chosenRules(const RulesOptions& options) {
  if (options.name.empty()) return builtinRules().all();
  const FusionRule* const rule = builtinRules().find(options.name);
  return rule ? std::vector{rule} : std::vector<const FusionRule*>();
}

Result<int> showBook(const RulesOptions& options, Context& context) {
  const std::vector<const FusionRule*> rules = chosenRules(options);
  if (options.asJson) {
    Json list = Json::array();
    for (const FusionRule* rule : rules) list.push_back(toJson(*rule, nullptr));
    printJson(context, {{"rules", list}, {"model", nullptr}});
  } else if (options.name.empty()) {
    printList(context);
  } else {
    printDetails(*rules.front(), context);
  }
  return 0;
}

Result<int> showUses(const RulesOptions& options, Context& context) {
  const Result<OpenedPipeline> pipeline = openPipeline(options, context);
  if (!pipeline) return pipeline.error();
  const FusionReport& report = pipeline->analysis.report;
  std::vector<RuleUse> uses = ruleUses(report, pipeline->graph().pass());
  if (!options.name.empty()) std::erase_if(uses, [&](const RuleUse& use) { return use.rule->name != options.name; });
  if (options.asJson) {
    Json list = Json::array();
    for (const RuleUse& use : uses) list.push_back(toJson(*use.rule, useJson(use, report.device)));
    printJson(context, {{"rules", list}, {"model", modelJson(report.device)}});
  } else if (options.name.empty()) {
    context.out << ruleUseTable(uses, report.device, context.hasColour);
  } else {
    printDetails(*uses.front().rule, context);
    context.out << ruleUseText(uses.front(), pipeline->graph(), report.device, context.hasColour);
  }
  return 0;
}

Result<int> showRules(const RulesOptions& options, Context& context) {
  if (chosenRules(options).empty()) return unknownRule(options.name);
  return options.file.empty() ? showBook(options, context) : showUses(options, context);
}

/// They say how a pipeline is planned.
void addOptionsOfPlans(CLI::App& verb, RulesOptions& options, CLI::Option* pipeline) {
  const std::vector<CLI::Option*> others = verb.get_options();
  addReadingOptions(verb, options);
  addFusionOptions(verb, options);
  addRanksOption(verb, options);
  for (CLI::Option* option : verb.get_options())
    if (std::ranges::find(others, option) == others.end() && !option->check_name("--json")) option->needs(pipeline);
}

Json rulesSchema() {
  const Json step = schema::object({{"role", schema::text("Role of the step.")},
                                    {"description", schema::text("Ops that the step matches.")},
                                    {"operations", schema::texts("Names of these ops; empty: a class of ops.")},
                                    {"repeat", schema::choice({"once", "optional", "oneOrMore", "zeroOrMore"})},
                                    {"follows", schema::text("Role of the previous step; empty: the one above.")}});
  return schema::object(
      {{"rules",
        schema::list(schema::object(
            {{"name", schema::text("Name, as for --without.")},
             {"pass", schema::choice({"joint", "forward", "backward"})},
             {"origin", schema::choice({"te", "fuseline"})},
             {"summary", schema::text("Savings, and why the rule is legal.")},
             {"chain", schema::list(step)},
             {"conditions", schema::texts("Conditions, one sentence each.")},
             {"kernel", schema::text("Kernel that replaces the ops.")},
             {"hardware", schema::text("Requirements on the GPU; empty: none.")},
             {"requestReason", schema::text("Reason why it is used only on request; empty: it is used by default.")},
             {"use", schema::orNull(useSchema())}}))},
       {"model", schema::orNull(modelSchema())}});
}

}  // namespace rules_parts
}  // namespace

void addRulesVerb(CLI::App& app, Context& context) {
  using namespace rules_parts;
  const auto options = std::make_shared<RulesOptions>();
  CLI::App* verb = addVerb(app, context, "rules",
                           "List the fusion rules; with a name, show one rule; with --in, show where rules apply in a "
                           "pipeline, and what they save.",
                           options, showRules, rulesSchema);
  verb->add_option("NAME", options->name, "A rule");
  CLI::Option* const pipeline =
      verb->add_option("--in", options->file,
                       "Pipeline (*.fuseline): show where each rule applies in it, and what it saves")
          ->type_name("FILE");
  addOptionsOfPlans(*verb, *options, pipeline);
}

}  // namespace fuseline::cli
