// Finds the operands of the ops between tokens and experts.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/moe_step.h"

#include <utility>

namespace fuseline {

namespace {

bool isForwardPass(const StepRequest& request) { return request.step.phase == Phase::Forward; }

}  // namespace

Result<RouterStep> routerStep(const StepRequest& request) {
  const auto find = [&](OperandKind kind, int slot) { return findOperand(request, {0, kind, slot}); };
  RouterStep step{.form = routerForm(request.member(0).attributes),
                  .x = find(OperandKind::Input, 0),
                  .bias = find(OperandKind::Parameter, 0),
                  .y = find(OperandKind::Output, 0),
                  .indices = find(OperandKind::Output, RouterForm::kIndices),
                  .counts = find(OperandKind::Output, RouterForm::kTokensPerExpert),
                  .dy = find(OperandKind::GradOutput, 0),
                  .dx = find(OperandKind::GradInput, 0),
                  .dBias = find(OperandKind::GradParameter, 0)};
  const bool isForward = isForwardPass(request);
  if (!step.x && (isForward || step.dx)) return missingOperand(request, {0, OperandKind::Input, 0});
  if (!isForward && step.dx && !step.indices)
    return missingOperand(request, {0, OperandKind::Output, RouterForm::kIndices});
  return step;
}

Result<PermuteStep> permuteStep(const StepRequest& request) {
  const auto find = [&](OperandKind kind, int slot) { return findOperand(request, {0, kind, slot}); };
  PermuteStep step{.form = permuteForm(request.member(0).attributes),
                   .x = find(OperandKind::Input, 0),
                   .indices = find(OperandKind::Input, PermuteForm::kIndices),
                   .y = find(OperandKind::Output, 0),
                   .map = find(OperandKind::Output, PermuteForm::kRowIdMap),
                   .sizes = find(OperandKind::Output, PermuteForm::kSplitSizes),
                   .dy = find(OperandKind::GradOutput, 0),
                   .dx = find(OperandKind::GradInput, 0)};
  const bool isForward = isForwardPass(request);
  if (isForward && !step.x) return missingOperand(request, {0, OperandKind::Input, 0});
  if (isForward && !step.indices) return missingOperand(request, {0, OperandKind::Input, PermuteForm::kIndices});
  if (isForward) return step;
  if (!step.map) return missingOperand(request, {0, OperandKind::Output, PermuteForm::kRowIdMap});
  if (!step.dy) return missingOperand(request, {0, OperandKind::GradOutput, 0});
  if (!step.dx) return missingOperand(request, {0, OperandKind::GradInput, 0});
  return step;
}

Result<UnpermuteStep> unpermuteStep(const StepRequest& request) {
  const auto find = [&](OperandKind kind, int slot) { return findOperand(request, {0, kind, slot}); };
  UnpermuteStep step{.x = find(OperandKind::Input, 0),
                     .map = find(OperandKind::Input, UnpermuteStep::kRowIdMap),
                     .probs = find(OperandKind::Input, UnpermuteStep::kProbs),
                     .y = find(OperandKind::Output, 0),
                     .dy = find(OperandKind::GradOutput, 0),
                     .dx = find(OperandKind::GradInput, 0),
                     .dProbs = find(OperandKind::GradInput, UnpermuteStep::kProbs)};
  const bool isForward = isForwardPass(request);
  if (!step.map) return missingOperand(request, {0, OperandKind::Input, UnpermuteStep::kRowIdMap});
  if ((isForward || step.dProbs) && !step.x) return missingOperand(request, {0, OperandKind::Input, 0});
  if (!isForward && !step.dy) return missingOperand(request, {0, OperandKind::GradOutput, 0});
  return step;
}

Result<UnpermuteAddStep> unpermuteAddStep(const StepRequest& request) {
  Result<UnpermuteStep> own = unpermuteStep(request);
  if (!own) return own.error();
  UnpermuteAddStep step{std::move(*own), {}};
  const int last = static_cast<int>(request.step.nodes.size()) - 1;
  for (int member = 1; member <= last; ++member) {
    const Node& add = request.member(static_cast<std::size_t>(member));
    const NodeId before = request.step.nodes[static_cast<std::size_t>(member) - 1];
    const int slot = request.graph.value(add.inputs.front()).producer == before ? 1 : 0;
    const Result<Binding> addend = requireOperand(request, {member, OperandKind::Input, slot});
    if (!addend) return addend.error();
    step.addends[static_cast<std::size_t>(member) - 1] = *addend;
  }
  const Result<Binding> y = requireOperand(request, {last, OperandKind::Output, 0});
  if (!y) return y.error();
  step.y = *y;
  return step;
}

}  // namespace fuseline
