// Matching a chain step, and the ordered rule set.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rule.h"

#include <algorithm>
#include <stdexcept>

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
    case FusionPass::Forward:
    case FusionPass::ForwardQuantization: return "forward";
    case FusionPass::Backward:
    case FusionPass::BackwardQuantization: return "backward";
  }
  return "?";
}

std::string_view originName(RuleOrigin origin) { return origin == RuleOrigin::Te ? "te" : "fuseline"; }

bool ChainStep::matches(const Node& node) const {
  const bool isNamed = operations.empty() || std::ranges::count(operations, node.operation->name) > 0;
  return isNamed && (!accepts || accepts(node));
}

bool ChainStep::matches(const Node& node, const Node& first) const {
  return matches(node) && (!behind || behind(first));
}

std::string ChainStep::description() const {
  return acceptsText.empty() ? fmt::format("{}", fmt::join(operations, " or ")) : acceptsText;
}

const Node* Match::role(std::string_view name) const {
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (rule.chain[static_cast<std::size_t>(steps[i])].role == name) return &node(i);
  return nullptr;
}

bool FusionRule::hasRepeatedStep() const {
  return std::ranges::any_of(chain, [](const ChainStep& step) { return step.isRepeated(); });
}

std::optional<std::vector<int>> chainSteps(const FusionRule& rule, const Graph& graph, std::span<const NodeId> nodes) {
  std::vector<int> steps;
  const auto fitsNext = [&](const ChainStep& step) {
    return steps.size() < nodes.size() && step.matches(graph.node(nodes[steps.size()]), graph.node(nodes.front()));
  };
  for (int index = 0; index < static_cast<int>(rule.chain.size()); ++index) {
    const ChainStep& step = rule.chain[static_cast<std::size_t>(index)];
    if (!fitsNext(step) && !step.isOptional()) return std::nullopt;
    if (fitsNext(step)) steps.push_back(index);
    while (step.isRepeated() && fitsNext(step)) steps.push_back(index);
  }
  return steps.size() == nodes.size() ? std::optional(steps) : std::nullopt;
}

namespace {

/// A joint fusion replaces both halves of its ops, so it defines the tensors kept between them; the others must leave
/// that to the ops, because the opposite pass is fused independently.
Verdict checkContext(const FusionRule& rule) {
  if (rule.pass == FusionPass::Joint && !rule.saves)
    return Verdict::no(fmt::format(
        "{}: a joint rule replaces forward and backward; expected a saves function, found none.", rule.name));
  if (rule.pass != FusionPass::Joint && rule.saves)
    return Verdict::no(
        fmt::format("{}: a {} rule keeps the tensors that its ops keep for backward. Remove the saves function.",
                    rule.name, passName(rule.pass)));
  return Verdict::yes();
}

Verdict check(const FusionRule& rule) {
  if (rule.name.empty()) return Verdict::no("A fusion rule has no name.");
  if (rule.chain.empty())
    return Verdict::no(fmt::format("{}: a fusion needs at least one op in its chain.", rule.name));
  if (rule.chain.front().isOptional())
    return Verdict::no(fmt::format("{}: the first op of a chain cannot be optional.", rule.name));
  if (rule.becomes.empty()) return Verdict::no(fmt::format("{}: the fusion has no kernel.", rule.name));
  return checkContext(rule);
}

FusionRule inPass(FusionRule rule, FusionPass pass) {
  rule.pass = pass;
  return rule;
}

}  // namespace

Result<void> RuleCatalog::registerForwardFusion(FusionRule rule, bool prepend) {
  return registerFusion(inPass(std::move(rule), FusionPass::Forward), prepend);
}

Result<void> RuleCatalog::registerBackwardFusion(FusionRule rule, bool prepend) {
  return registerFusion(inPass(std::move(rule), FusionPass::Backward), prepend);
}

Result<void> RuleCatalog::registerForwardBackwardFusion(FusionRule rule, bool prepend) {
  return registerFusion(inPass(std::move(rule), FusionPass::Joint), prepend);
}

Result<void> RuleCatalog::registerFusion(FusionRule rule, bool prepend) {
  if (const Verdict verdict = check(rule); !verdict) return Error{verdict.reason()};
  if (find(rule.name)) return Error{fmt::format("{}: two fusion rules have this name.", rule.name)};
  auto& list = m_rules[static_cast<std::size_t>(rule.pass)];
  list.insert(prepend ? list.begin() : list.end(), std::make_shared<const FusionRule>(std::move(rule)));
  return {};
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

void addOrThrow(RuleCatalog& catalog, FusionRule rule) {
  if (const Result<void> added = catalog.registerFusion(std::move(rule)); !added)
    throw std::logic_error(added.error().message);
}

RuleCatalog makeBuiltin() {
  RuleCatalog catalog;
#define FUSELINE_CATALOG_ENTRY(name) addOrThrow(catalog, rules::name());
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
