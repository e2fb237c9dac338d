// Plans as text, and the programs of their elementwise steps.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/plan.h"

#include "core/support/text.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {

const StepOperand* Step::find(OperandKey key) const {
  const auto found = std::ranges::find(operands, key, &StepOperand::key);
  return found == operands.end() ? nullptr : &*found;
}

const QuantizeWork* Step::workOn(OperandKey key) const {
  const auto found = std::ranges::find(copies, key, &QuantizeWork::source);
  return found == copies.end() ? nullptr : &*found;
}

std::int64_t Plan::numLaunches() const {
  return std::ranges::count_if(steps, [](const Step& step) { return step.isWork(); });
}

int Plan::findTensor(std::string_view name) const {
  const auto found = std::ranges::find(tensors, name, &PlanTensor::name);
  return found == tensors.end() ? -1 : static_cast<int>(found - tensors.begin());
}

ElementwiseProgram composeProgram(const Graph& graph, const Step& step, int first, int last) {
  SortedSet<OperandKey> present;
  for (const StepOperand& operand : step.operands) present.insert(operand.key);
  for (const QuantizeWork& work : step.copies) present.insert(work.source);
  const int end = last < 0 ? static_cast<int>(step.nodes.size()) : last;
  return composeMembers(graph, step.nodes, step.phase, present, first, end, step.window.first);
}

namespace {

/// The widest name of a phase.
std::size_t phaseWidth(const Plan& plan) {
  const bool hasOptimizer = std::ranges::count(plan.steps, Phase::Optimizer, &Step::phase) > 0;
  return phaseName(hasOptimizer ? Phase::Optimizer : Phase::Backward).size();
}

std::string toString(const Plan& plan, const Step& step, std::size_t width) {
  std::vector<std::string> reads;
  std::vector<std::string> writes;
  for (const StepOperand& operand : step.operands)
    (operand.access == OperandAccess::Read ? reads : writes)
        .push_back(plan.tensors[static_cast<std::size_t>(operand.tensor)].name +
                   (operand.access == OperandAccess::Accumulate ? " (added to)" : ""));
  return fmt::format("{:<{}} {:<20} {} : {} -> {}{}", phaseName(step.phase), width, step.isView ? "view" : step.kernel,
                     step.name, fmt::join(reads, ", "), fmt::join(writes, ", "), inParentheses(step.note));
}

}  // namespace

std::string toString(const Plan& plan) {
  std::string text;
  const std::size_t width = phaseWidth(plan);
  for (const Step& step : plan.steps) text += toString(plan, step, width) + "\n";
  text += fmt::format("persistent {}, arena {}, saved for backward {}, {} steps\n", formatBytes(plan.persistentBytes),
                      formatBytes(plan.arenaBytes), formatBytes(plan.savedForBackwardBytes), plan.numLaunches());
  if (plan.hostBytes > 0) text += fmt::format("in the host's memory {}\n", formatBytes(plan.hostBytes));
  return text;
}

}  // namespace fuseline
