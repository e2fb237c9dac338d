// Finds the operands of kernels "adamw" and "grad_norm".
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/adamw_step.h"

#include <utility>

namespace fuseline {

namespace {

Result<AdamWStep::Parameter> parameterAt(const StepRequest& request, int member) {
  AdamWStep::Parameter parameter;
  for (const auto& [key, binding] : {std::pair(OperandKey{member, OperandKind::Parameter, 0}, &parameter.weight),
                                     {OperandKey{member, OperandKind::GradParameter, 0}, &parameter.gradient},
                                     {OperandKey{member, OperandKind::Residual, 0}, &parameter.expAvg},
                                     {OperandKey{member, OperandKind::Residual, 1}, &parameter.expAvgSq}}) {
    Result<Binding> found = requireOperand(request, key);
    if (!found) return found.error();
    *binding = std::move(*found);
  }
  parameter.master = findOperand(request, {member, OperandKind::Residual, 2});
  return parameter;
}

}  // namespace

Result<AdamWStep> adamWStep(const StepRequest& request) {
  AdamWStep step{.options = *request.graph.optimizer()};
  Result<Binding> updates = requireOperand(request, {0, OperandKind::Input, 0});
  if (!updates) return updates.error();
  step.numUpdates = std::move(*updates);
  step.gradientSquares = findOperand(request, {0, OperandKind::Input, 1});
  int member = -1;
  for (const TrainedParameter& trained : trainedParameters(request.graph)) {
    ++member;
    if (trained.isFrozen) continue;
    Result<AdamWStep::Parameter> parameter = parameterAt(request, member);
    if (!parameter) return parameter.error();
    step.parameters.push_back(std::move(*parameter));
  }
  return step;
}

Result<GradNormStep> gradNormStep(const StepRequest& request) {
  GradNormStep step;
  Result<Binding> squares = requireOperand(request, {0, OperandKind::Output, 0});
  if (!squares) return squares.error();
  step.squares = std::move(*squares);
  int member = 0;
  for (const TrainedParameter& parameter : trainedParameters(request.graph)) {
    Result<Binding> gradient = requireOperand(request, {member++, OperandKind::GradParameter, 0});
    if (!gradient) return gradient.error();
    (parameter.isShard ? step.shards : step.wholes).push_back(std::move(*gradient));
  }
  return step;
}

}  // namespace fuseline
