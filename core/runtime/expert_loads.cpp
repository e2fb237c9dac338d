// The plan keeps integers of routing until its end, so that they can be read after a run.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/expert_loads.h"

#include "core/ops/grouped_form.h"
#include "core/ops/moe_form.h"
#include "core/support/to_index.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

namespace fuseline {

namespace {

/// The slot of the integers that say where rows go.
std::optional<int> routingSlot(const Graph& graph, const Node& node) {
  if (node.operation->name == "MoEPermute") return PermuteForm::kIndices;
  if (node.operation->name != "GroupedLinear") return std::nullopt;
  const Value& sizes = graph.value(node.inputs[GroupedForm::kSplitSizes]);
  return sizes.producer < 0 ? std::optional<int>(GroupedForm::kSplitSizes) : std::nullopt;
}

std::vector<std::int64_t> tokensOf(const Node& node, const Tensor& tensor) {
  const std::vector<double> values = tensor.toDoubles();
  if (node.operation->name == "GroupedLinear") return {values.begin(), values.end()};
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(permuteForm(node.attributes).numExperts), 0);
  for (const double expert : values)
    if (expert >= 0.0 && expert < static_cast<double>(tokens.size())) ++tokens[static_cast<std::size_t>(expert)];
  return tokens;
}

}  // namespace

std::vector<ExpertLoad> expertLoads(const Graph& graph, const TimedPlan& ran) {
  std::vector<ExpertLoad> loads;
  std::set<int> seen;
  for (const Step& step : ran.plan().steps) {
    if (step.phase != Phase::Forward) continue;
    for (std::size_t member = 0; member < step.nodes.size(); ++member) {
      const Node& node = graph.node(step.nodes[member]);
      const std::optional<int> slot = routingSlot(graph, node);
      if (!slot) continue;
      const OperandKey key{static_cast<int>(member), OperandKind::Input, *slot};
      const auto operand = std::ranges::find(step.operands, key, &StepOperand::key);
      if (operand == step.operands.end() || !seen.insert(operand->tensor).second) continue;
      const Result<Tensor> tensor = ran.read(ran.plan().tensors[toIndex(operand->tensor)].name);
      if (tensor) loads.push_back({.op = node.id, .owner = node.owner, .tokens = tokensOf(node, *tensor)});
    }
  }
  return loads;
}

}  // namespace fuseline
