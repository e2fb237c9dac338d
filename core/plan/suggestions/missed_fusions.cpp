// The repairs of fusions that did not apply.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/suggestions/sources.h"

#include <algorithm>

#include <fmt/format.h>

namespace fuseline {

namespace {

const SetAttribute* attributeEdit(const Edit& edit) {
  if (const auto* inBlock = std::get_if<EditInBlock>(&edit); inBlock && inBlock->edits.size() == 1)
    return attributeEdit(inBlock->edits.front());
  return std::get_if<SetAttribute>(&edit);
}

/// "In every instance of Layer. "
std::string blockText(const Edit& edit) {
  const auto* inBlock = std::get_if<EditInBlock>(&edit);
  return inBlock ? fmt::format("In every instance of block {}. ", inBlock->name) : "";
}

bool isBorder(const Edit& edit) {
  if (const auto* group = std::get_if<EditGroup>(&edit)) return std::ranges::all_of(group->edits, isBorder);
  const SetAttribute* attribute = attributeEdit(edit);
  return attribute && attribute->name == kSequentialAttribute;
}

/// Help text of the attribute that the edit sets.
std::string helpFor(const Graph& graph, const Attempt& attempt, const Edit& edit) {
  const SetAttribute* attribute = attributeEdit(edit);
  if (!attribute) return {};
  for (const NodeId id : attempt.nodes)
    if (const AttributeSpec* spec = graph.node(id).operation->attribute(attribute->name))
      return fmt::format("{}: {}", attribute->name, spec->help);
  return {};
}

Proposal proposalOf(const Graph& graph, const Attempt& attempt, const Repair& repair) {
  Proposal proposal{.source = "missed_fusions", .node = graph.node(attempt.nodes.front()).owner, .repair = repair};
  if (isBorder(repair.edit)) {
    proposal.caution = blockText(repair.edit) +
                       "Parameters keep their values. Their names in TransformerEngine change, because the ops are in "
                       "other te.ops.Sequential modules.";
    return proposal;
  }
  proposal.kind = SuggestionKind::ChangesBehavior;
  proposal.caution = blockText(repair.edit) + helpFor(graph, attempt, repair.edit);
  return proposal;
}

}  // namespace

std::vector<Proposal> suggestion_sources::missed_fusions(const SuggestionContext& context) {
  std::vector<Proposal> proposals;
  for (const Attempt& attempt : context.analysis.report.attempts)
    for (const Repair& repair : attempt.repairs)
      if (!std::holds_alternative<SetRecipe>(repair.edit))  // see recipes.cpp
        proposals.push_back(proposalOf(context.analysis.graph(), attempt, repair));
  return proposals;
}

}  // namespace fuseline
