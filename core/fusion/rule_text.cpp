// Asks the chain steps of every rule which ops they accept.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/rule_text.h"

#include "core/ops/catalog.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

namespace {

std::string stepText(const ChainStep& step) {
  const std::string accepted = step.description();
  switch (step.repeat) {
    case Repeat::Once: return accepted;
    case Repeat::Optional: return "[" + accepted + "]";
    case Repeat::OneOrMore: return "(" + accepted + ")+";
    case Repeat::ZeroOrMore: return "[(" + accepted + ")+]";
  }
  return accepted;
}

/// The op itself, or the basic ops that a composite becomes.
std::vector<const FusibleOperation*> basicParts(const FusibleOperation& operation) {
  if (!operation.isComposite()) return {&operation};
  std::vector<const FusibleOperation*> parts;
  for (const ExpandedOperation& part : operation.expand(defaultAttributes(operation)))
    if (const FusibleOperation* found = builtinOperations().find(part.operation)) parts.push_back(found);
  return parts;
}

/// An op that is named may need attributes to be accepted.
bool accepts(const FusionRule& rule, const FusibleOperation& operation) {
  const Node node{.id = operation.name, .operation = unowned(operation), .attributes = defaultAttributes(operation)};
  return std::ranges::any_of(rule.chain, [&](const ChainStep& step) {
    return step.operations.empty() ? step.matches(node) : std::ranges::count(step.operations, operation.name) > 0;
  });
}

}  // namespace

std::string patternText(const FusionRule& rule) {
  std::vector<std::string> steps;
  for (const ChainStep& step : rule.chain) steps.push_back(stepText(step));
  return fmt::format("{}", fmt::join(steps, " → "));
}

std::string listName(FusionPass pass) {
  const bool isFusedOperand = pass == FusionPass::ForwardQuantization || pass == FusionPass::BackwardQuantization;
  return fmt::format("{}{}", passName(pass), isFusedOperand ? ", quantized output" : "");
}

std::vector<const FusionRule*> rulesFor(const FusibleOperation& operation) {
  const std::vector<const FusibleOperation*> parts = basicParts(operation);
  std::vector<const FusionRule*> rules = builtinRules().all();
  std::erase_if(rules, [&](const FusionRule* rule) {
    return std::ranges::none_of(parts, [&](const FusibleOperation* part) { return accepts(*rule, *part); });
  });
  return rules;
}

}  // namespace fuseline
