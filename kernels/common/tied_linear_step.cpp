// Finds the operands of TiedLinear.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/tied_linear_step.h"

#include <vector>

namespace fuseline {

namespace {

constexpr int kTiedX = 0;
constexpr int kTiedWeight = 1;

LinearSize tiedSize(const StepRequest& request) {
  const std::vector<TensorSpec> inputs = request.graph.inputSpecs(request.step.nodes.front());
  const Shape& weight = inputs[kTiedWeight].shape;
  return {.m = inputs[kTiedX].rows(), .n = weight[0], .k = weight[1]};
}

/// The GEMM for the gradient of the input in slot `result`; slot `factor` has the other input.
Result<LinearGradStep> tiedGrad(const StepRequest& request, int result, int factor) {
  LinearGradStep step{.size = tiedSize(request), .result = findSlot(request, OperandKind::GradInput, result)};
  if (!step.result) return step;
  const Result<Binding> gradOutput = requireOperand(request, {0, OperandKind::GradOutput, 0});
  if (!gradOutput) return gradOutput.error();
  const Result<Binding> input = requireOperand(request, {0, OperandKind::Input, factor});
  if (!input) return input.error();
  step.gradOutput = *gradOutput;
  step.factor = *input;
  return step;
}

}  // namespace

Result<LinearForwardStep> readTiedForward(const StepRequest& request) {
  const Result<Binding> x = requireOperand(request, {0, OperandKind::Input, kTiedX});
  if (!x) return x.error();
  const Result<Binding> weight = requireOperand(request, {0, OperandKind::Input, kTiedWeight});
  if (!weight) return weight.error();
  const Result<Binding> y = requireOperand(request, {0, OperandKind::Output, 0});
  if (!y) return y.error();
  return LinearForwardStep{tiedSize(request), *x, *weight, *y};
}

Result<LinearGradStep> readTiedInputGrad(const StepRequest& request) { return tiedGrad(request, kTiedX, kTiedWeight); }

Result<LinearGradStep> readTiedWeightGrad(const StepRequest& request) { return tiedGrad(request, kTiedWeight, kTiedX); }

}  // namespace fuseline
