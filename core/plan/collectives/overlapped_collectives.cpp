// Finds how long each collective may take beside other steps.
// SPDX-License-Identifier: Apache-2.0
#include "core/plan/collectives/overlapped_collectives.h"

#include "core/support/to_index.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

namespace fuseline {

namespace {

class Overlap {
 public:
  Overlap(Plan& plan, const std::vector<int>& viewOf) : m_plan(plan), m_viewOf(viewOf) {}

  void insertWaits() {
    std::vector<std::vector<Step>> before(m_plan.steps.size() + 1);
    for (std::size_t index = 0; index < m_plan.steps.size(); ++index) {
      Step& step = m_plan.steps[index];
      if (!step.collective || !step.isLaunched() || step.collective->half != CollectiveWork::Half::Whole) continue;
      const std::size_t end = firstThatNeeds(index);
      if (!isWorkBetween(index, end)) continue;
      before[end].push_back(waitFor(step));
      step.collective->half = CollectiveWork::Half::Begin;
    }
    std::vector<Step> steps;
    for (std::size_t index = 0; index < before.size(); ++index) {
      std::ranges::move(before[index], std::back_inserter(steps));
      if (index < m_plan.steps.size()) steps.push_back(std::move(m_plan.steps[index]));
    }
    m_plan.steps = std::move(steps);
  }

 private:
  int root(int tensor) const {
    while (m_viewOf[toIndex(tensor)] != tensor) tensor = m_viewOf[toIndex(tensor)];
    return tensor;
  }

  std::size_t firstThatNeeds(std::size_t index) const {
    std::set<int> sent;
    std::set<int> received;
    for (const StepOperand& operand : m_plan.steps[index].operands)
      (operand.access == OperandAccess::Read ? sent : received).insert(root(operand.tensor));
    const auto needs = [&](const StepOperand& operand) {
      const int tensor = root(operand.tensor);
      return received.contains(tensor) || (operand.access != OperandAccess::Read && sent.contains(tensor));
    };
    std::size_t next = index + 1;
    while (next < m_plan.steps.size() && !(m_plan.steps[next].collective && m_plan.steps[next].isLaunched()) &&
           std::ranges::none_of(m_plan.steps[next].operands, needs))
      ++next;
    return next;
  }

  bool isWorkBetween(std::size_t begin, std::size_t end) const {
    for (std::size_t index = begin + 1; index < end; ++index)
      if (m_plan.steps[index].isWork() && !m_plan.steps[index].transfer) return true;
    return false;
  }

  Plan& m_plan;
  const std::vector<int>& m_viewOf;
};

}  // namespace

Step waitFor(const Step& begin) {
  Step wait{.name = begin.name + " (wait)", .kernel = begin.kernel + "_wait", .phase = begin.phase};
  wait.nodes = begin.nodes;
  wait.collective = begin.collective;
  wait.collective->half = CollectiveWork::Half::Await;
  wait.operands = begin.operands;
  for (StepOperand& operand : wait.operands) operand.access = OperandAccess::Read;
  return wait;
}

void overlapCollectives(Plan& plan, const std::vector<int>& viewOf) { Overlap(plan, viewOf).insertWaits(); }

}  // namespace fuseline
