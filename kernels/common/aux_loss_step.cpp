// Finds the operands of MoEAuxLoss.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/aux_loss_step.h"

#include <utility>

namespace fuseline {

std::int64_t AuxLossStep::tokens() const {
  std::int64_t sum = 0;
  for (const Layer& layer : layers) sum += layer.logits.spec.rows();
  return sum;
}

Result<AuxLossStep> auxLossStep(const StepRequest& request) {
  AuxLossStep step{.form = auxLossForm(request.member(0).attributes)};
  for (int index = 0; index < step.form.layers; ++index) {
    const Result<Binding> logits = requireOperand(request, {0, OperandKind::Input, step.form.logitsSlot(index)});
    if (!logits) return logits.error();
    const Result<Binding> counts = requireOperand(request, {0, OperandKind::Input, step.form.countsSlot(index)});
    if (!counts) return counts.error();
    step.layers.push_back(
        {*logits, *counts, findOperand(request, {0, OperandKind::GradInput, step.form.logitsSlot(index)})});
  }
  const bool isForward = request.step.phase == Phase::Forward;
  Result<Binding> loss = requireOperand(request, {0, isForward ? OperandKind::Output : OperandKind::GradOutput, 0});
  if (!loss) return loss.error();
  (isForward ? step.y : step.dy) = std::move(*loss);
  return step;
}

}  // namespace fuseline
