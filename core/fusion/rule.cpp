// Matching a chain step, and the ordered rule book.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rule.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace rules {
#define FUSELINE_CATALOG_ENTRY(name) FusionRule name();
#include "core/fusion/rules/rules.inc"
#undef FUSELINE_CATALOG_ENTRY
}  // namespace rules

std::string_view passName(FusionPass pass) {
  switch (pass) {
    case FusionPass::Joint: return "joint";
    case FusionPass::Forward: return "forward";
    case FusionPass::Backward: return "backward";
  }
  return "?";
}

std::string_view originName(RuleOrigin origin) { return origin == RuleOrigin::Te ? "te" : "fuseline"; }

bool ChainStep::matches(const Node& node) const {
  if (accepts) return accepts(node);
  return std::ranges::find(operations, node.operation->name) != operations.end();
}

std::string ChainStep::description() const {
  return operations.empty() ? acceptsText : fmt::format("{}", fmt::join(operations, " or "));
}

const Node* Match::role(std::string_view name) const {
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (rule.chain[static_cast<std::size_t>(steps[i])].role == name) return &node(i);
  return nullptr;
}

void RuleCatalog::registerForwardFusion(FusionRule rule, bool prepend) {
  add(FusionPass::Forward, std::move(rule), prepend);
}

void RuleCatalog::registerBackwardFusion(FusionRule rule, bool prepend) {
  add(FusionPass::Backward, std::move(rule), prepend);
}

void RuleCatalog::registerForwardBackwardFusion(FusionRule rule, bool prepend) {
  add(FusionPass::Joint, std::move(rule), prepend);
}

void RuleCatalog::add(FusionPass pass, FusionRule rule, bool prepend) {
  auto& list = m_rules[static_cast<std::size_t>(pass)];
  rule.pass = pass;
  list.insert(prepend ? list.begin() : list.end(), std::make_shared<const FusionRule>(std::move(rule)));
}

const std::vector<std::shared_ptr<const FusionRule>>& RuleCatalog::rules(FusionPass pass) const {
  return m_rules[static_cast<std::size_t>(pass)];
}

std::vector<const FusionRule*> RuleCatalog::all() const {
  std::vector<const FusionRule*> list;
  for (const auto& pass : m_rules)
    for (const auto& rule : pass) list.push_back(rule.get());
  return list;
}

const FusionRule* RuleCatalog::find(std::string_view name) const {
  for (const FusionRule* rule : all())
    if (rule->name == name) return rule;
  return nullptr;
}

namespace {

void addByPass(RuleCatalog& catalog, FusionRule rule) {
  switch (rule.pass) {
    case FusionPass::Joint: return catalog.registerForwardBackwardFusion(std::move(rule));
    case FusionPass::Forward: return catalog.registerForwardFusion(std::move(rule));
    case FusionPass::Backward: return catalog.registerBackwardFusion(std::move(rule));
  }
}

RuleCatalog makeBuiltin() {
  RuleCatalog catalog;
#define FUSELINE_CATALOG_ENTRY(name) addByPass(catalog, rules::name());
#include "core/fusion/rules/rules.inc"
#undef FUSELINE_CATALOG_ENTRY
  return catalog;
}

}  // namespace

const RuleCatalog& builtinRules() {
  static const RuleCatalog catalog = makeBuiltin();
  return catalog;
}

}  // namespace fuseline
