// Finds the operands of linear layers.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/linear_step.h"

namespace fuseline {

namespace {

Result<LinearGradStep> readGrad(const StepRequest& request, const LinearGradMembers& members, Usage direction,
                                const OperandKey& factorKey, const OperandKey& resultKey) {
  const Result<Binding> result = requireResult(request, resultKey);
  if (!result) return LinearGradStep{};
  const Result<Binding> gradOutput =
      requireOperand(request, {members.gradOutput, OperandKind::GradOutput, 0}, direction);
  if (!gradOutput) return gradOutput.error();
  const Result<Binding> factor = requireOperand(request, factorKey);
  if (!factor) return factor.error();
  const TensorSpec& x = direction == Usage::Rowwise ? result->spec : factor->spec;
  return LinearGradStep{.size = linearSize(request.member(static_cast<std::size_t>(members.linear)), x),
                        .gradOutput = *gradOutput,
                        .factor = *factor,
                        .result = *result,
                        .isRequested = true};
}

}  // namespace

LinearSize linearSize(const Node& node, const TensorSpec& x) {
  const Shape& weight = node.parameters.front().shape;
  return {.m = x.rows(), .n = weight[0], .k = weight[1], .split = node.quantizers.splitAccumulators};
}

Result<LinearForwardStep> readLinearForward(const StepRequest& request) {
  const int last = static_cast<int>(request.step.nodes.size()) - 1;
  const Result<Binding> x = requireOperand(request, {0, OperandKind::Input, 0});
  if (!x) return x.error();
  const Result<Binding> weight = requireOperand(request, {0, OperandKind::Parameter, 0});
  if (!weight) return weight.error();
  const Result<Binding> y = requireResult(request, {last, OperandKind::Output, 0});
  if (!y) return y.error();
  return LinearForwardStep{.size = linearSize(request.member(0), x->spec), .x = *x, .weight = *weight, .y = *y};
}

Result<LinearGradStep> readInputGrad(const StepRequest& request, const LinearGradMembers& members) {
  return readGrad(request, members, Usage::Rowwise, {members.linear, OperandKind::Parameter, 0},
                  {members.gradInput, OperandKind::GradInput, 0});
}

Result<LinearGradStep> readWeightGrad(const StepRequest& request, const LinearGradMembers& members) {
  return readGrad(request, members, Usage::Columnwise, {members.linear, OperandKind::Input, 0},
                  {members.linear, OperandKind::GradParameter, 0});
}

}  // namespace fuseline
