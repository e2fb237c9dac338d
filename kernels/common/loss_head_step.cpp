// Finds the operands of a head and its loss.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/loss_head_step.h"

#include <optional>

namespace fuseline {

namespace {

constexpr int kHead = 0;
constexpr int kLoss = 1;

std::optional<Error> require(const StepRequest& request, const OperandKey& key, Binding& binding) {
  const Result<Binding> found = requireOperand(request, key);
  if (!found) return found.error();
  binding = *found;
  return std::nullopt;
}

}  // namespace

Result<LossHeadStep> readLossHead(const StepRequest& request) {
  const bool isTied = request.member(kHead).operation->name == "TiedLinear";
  const int weightSlot = isTied ? 1 : 0;
  LossHeadStep step{.form = crossEntropyForm(request.member(kLoss).attributes)};
  const OperandKey weight{kHead, isTied ? OperandKind::Input : OperandKind::Parameter, weightSlot};
  const OperandKey target{kLoss, OperandKind::Input, CrossEntropyForm::kTarget};
  const OperandKey lse{kLoss, OperandKind::Residual, CrossEntropyForm::kLse};
  if (auto error = require(request, {kHead, OperandKind::Input, 0}, step.x)) return *error;
  if (auto error = require(request, weight, step.weight)) return *error;
  if (auto error = require(request, target, step.target)) return *error;
  step.size = {.m = step.x.spec.rows(), .n = step.weight.spec.shape[0], .k = step.weight.spec.shape[1]};
  if (request.step.phase == Phase::Forward) {
    step.y = findOperand(request, {kLoss, OperandKind::Output, 0});
    step.lse = findOperand(request, lse);
    return step;
  }
  if (auto error = require(request, lse, step.lse)) return *error;
  if (auto error = require(request, {kLoss, OperandKind::GradOutput, 0}, step.dy)) return *error;
  step.dx = findOperand(request, {kHead, OperandKind::GradInput, 0});
  step.dWeight =
      findOperand(request, {kHead, isTied ? OperandKind::GradInput : OperandKind::GradParameter, weightSlot});
  return step;
}

}  // namespace fuseline
