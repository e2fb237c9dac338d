// fuseline rules: the rule book, in the order in which rules are tried.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/table.h"
#include "app/cli/verbs.h"
#include "core/fusion/rule_text.h"
#include "core/support/text.h"

#include <fmt/format.h>

namespace fuseline::cli {

namespace {

struct RulesOptions {
  std::string name;
  bool asJson = false;
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

Json toJson(const FusionRule& rule) {
  Json chain = Json::array();
  for (const ChainStep& step : rule.chain)
    chain.push_back({{"role", step.role},
                     {"accepts", step.description()},
                     {"operations", step.operations},
                     {"repeat", repeatName(step.repeat)}});
  Json conditions = Json::array();
  for (const Condition& condition : rule.conditions) conditions.push_back(condition.sentence);
  return {{"name", rule.name},
          {"pass", passName(rule.pass)},
          {"origin", originName(rule.origin)},
          {"summary", rule.summary},
          {"chain", chain},
          {"conditions", conditions},
          {"becomes", rule.becomes},
          {"hardware", rule.hardware ? toString(*rule.hardware) : ""},
          {"price", rule.price}};
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
              << fmt::format("  ({} pass, chapter {})\n", passName(rule.pass), originName(rule.origin)) << rule.summary
              << fmt::format("\n\npattern    {}\nbecomes    {}\n", patternText(rule), rule.becomes);
  if (rule.hardware) context.out << fmt::format("hardware   A GPU of {}.\n", toString(*rule.hardware));
  if (!rule.price.empty())
    context.out << fmt::format("price      {} Used on request only: --with {}.\n", rule.price, rule.name);
  if (rule.conditions.empty()) context.out << "conditions none\n";
  for (const Condition& condition : rule.conditions) context.out << "condition  " << condition.sentence << '\n';
}

Error unknownRule(const std::string& name) {
  std::vector<std::string> names;
  for (const FusionRule* rule : builtinRules().all()) names.push_back(rule->name);
  return unknownName("rules", "rule", name, names);
}

Result<int> showAll(const RulesOptions& options, Context& context) {
  if (!options.asJson) {
    printList(context);
    return 0;
  }
  Json list = Json::array();
  for (const FusionRule* rule : builtinRules().all()) list.push_back(toJson(*rule));
  printJson(context, {{"rules", list}});
  return 0;
}

Result<int> showRules(const RulesOptions& options, Context& context) {
  if (options.name.empty()) return showAll(options, context);
  const FusionRule* rule = builtinRules().find(options.name);
  if (!rule) return unknownRule(options.name);
  if (options.asJson)
    printJson(context, {{"rules", Json::array({toJson(*rule)})}});
  else
    printDetails(*rule, context);
  return 0;
}

}  // namespace

void addRulesVerb(CLI::App& app, Context& context) {
  const auto options = std::make_shared<RulesOptions>();
  CLI::App* verb =
      addVerb(app, context, "rules", "The fusion rule book; with a name everything about one rule", options, showRules);
  verb->add_option("NAME", options->name, "A rule");
  verb->add_flag("--json", options->asJson, "Machine-readable output");
}

}  // namespace fuseline::cli
