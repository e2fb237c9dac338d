// Finds the operands of norms.
// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/norm_operands.h"

namespace fuseline {

namespace {

Binding findMean(const StepRequest& request, int norm) {
  const Node& node = request.member(static_cast<std::size_t>(norm));
  return findOperand(request, {norm, OperandKind::Residual, residualSlot(*node.operation, "mean")});
}

/// The factor of every row is the last residual: rstd, or rnorm.
OperandKey factorKey(const StepRequest& request, int norm) {
  const Node& node = request.member(static_cast<std::size_t>(norm));
  return {norm, OperandKind::Residual, static_cast<int>(node.residuals.size()) - 1};
}

/// Absent where the norm has no weight.
Result<Binding> bindGamma(const StepRequest& request, int norm) {
  if (request.member(static_cast<std::size_t>(norm)).parameters.empty()) return Binding{};
  return requireOperand(request, {norm, OperandKind::Parameter, 0});
}

}  // namespace

Result<NormForwardOperands> bindNormForward(const StepRequest& request, int norm) {
  const Result<Binding> gamma = bindGamma(request, norm);
  if (!gamma) return gamma.error();
  const Result<Binding> y = requireResult(request, {norm, OperandKind::Output, 0});
  if (!y) return y.error();
  return NormForwardOperands{.gamma = *gamma,
                             .beta = findOperand(request, {norm, OperandKind::Parameter, 1}),
                             .y = *y,
                             .mean = findMean(request, norm),
                             .rstd = findOperand(request, factorKey(request, norm))};
}

Binding findNormSum(const StepRequest& request, int norm) {
  for (int member = 0; member < norm; ++member)
    for (int slot = 0; slot < 2; ++slot)
      if (const Binding sum = findOperand(request, {member, OperandKind::Output, slot})) return sum;
  return {};
}

NormGradientKeys ownNormGradients() { return {.gradInput = {0, OperandKind::GradInput, 0}, .extraGradient = {-1}}; }

NormGradientKeys branchedNormGradients(const StepRequest& request) {
  const int read = request.graph.value(request.member(1).inputs.front()).port;
  return {.gradInput = {0, OperandKind::GradInput, 0}, .extraGradient = {0, OperandKind::GradOutput, 1 - read}};
}

Result<NormBackwardOperands> bindNormBackward(const StepRequest& request, int norm, const NormGradientKeys& keys) {
  const Result<Binding> x = requireOperand(request, {norm, OperandKind::Input, 0});
  if (!x) return x.error();
  const Result<Binding> gamma = bindGamma(request, norm);
  if (!gamma) return gamma.error();
  const Result<Binding> gradOutput = requireOperand(request, {norm, OperandKind::GradOutput, 0});
  if (!gradOutput) return gradOutput.error();
  const Result<Binding> rstd = requireOperand(request, factorKey(request, norm));
  if (!rstd) return rstd.error();
  return NormBackwardOperands{.x = *x,
                              .gradOutput = *gradOutput,
                              .extra = findOperand(request, keys.extraGradient),
                              .gamma = *gamma,
                              .mean = findMean(request, norm),
                              .rstd = *rstd,
                              .gradInput = findOperand(request, keys.gradInput),
                              .gradGamma = findOperand(request, {norm, OperandKind::GradParameter, 0}),
                              .gradBeta = findOperand(request, {norm, OperandKind::GradParameter, 1})};
}

}  // namespace fuseline
