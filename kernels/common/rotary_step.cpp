// Finds the operands of RotaryPositionEmbedding.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/rotary_step.h"

#include <stdexcept>
#include <utility>

namespace fuseline {

std::vector<std::int64_t> RotaryStep::positions(std::span<const std::int64_t> sums,
                                                std::span<const std::int64_t> starts) const {
  Result<std::vector<std::int64_t>> found = rotaryPositions(form, layout, sums, starts);
  if (!found) throw std::runtime_error(found.error().message);
  return std::move(*found);
}

Result<RotaryStep> readRotary(const StepRequest& request) {
  RotaryStep step{.form = rotaryForm(request.member(0).attributes),
                  .isBackward = request.step.phase == Phase::Backward};
  const Result<TokenLayout> layout =
      rotaryLayout(step.form, request.graph.inputSpecs(request.step.nodes.front()).front().shape);
  if (!layout) return layout.error();
  const Result<Binding> from =
      requireOperand(request, {0, step.isBackward ? OperandKind::GradOutput : OperandKind::Input, 0});
  if (!from) return from.error();
  const Result<Binding> to =
      requireOperand(request, {0, step.isBackward ? OperandKind::GradInput : OperandKind::Output, 0});
  if (!to) return to.error();
  step.layout = *layout;
  step.from = *from;
  step.to = *to;
  step.fromLayout = layout->inRows(from->rowWidth, from->rowStride);
  step.toLayout = layout->inRows(to->rowWidth, to->rowStride);
  step.cuSeqlens = findSlot(request, OperandKind::Input, step.form.cuSeqlensSlot);
  step.startPositions = findSlot(request, OperandKind::Input, step.form.startPositionsSlot);
  return step;
}

}  // namespace fuseline
