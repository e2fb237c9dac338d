// Names steps by their ops, kernel and result.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/step_name.h"

#include "core/runtime/backend.h"

#include <algorithm>

namespace fuseline {

std::string describe(const Step& step) { return rangeName(step.name, step.kernel, phaseName(step.phase), ""); }

std::string firstWritten(const Plan& plan, const Step& step) {
  const auto isWritten = [](const StepOperand& operand) { return operand.access != OperandAccess::Read; };
  const auto written = std::ranges::find_if(step.operands, isWritten);
  return written == step.operands.end() ? std::string() : toString(plan.spec(*written));
}

std::string rangeName(const Plan& plan, const Step& step) {
  return rangeName(step.name, step.kernel, phaseName(step.phase), firstWritten(plan, step));
}

}  // namespace fuseline
