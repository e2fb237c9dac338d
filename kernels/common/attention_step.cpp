// From the op's form and the node's tensors to the problem.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/attention_step.h"

#include "core/quant/attention_quantizers.h"

#include <iterator>
#include <vector>

namespace fuseline {

namespace {

TokenLayout inRowsOf(const Binding& operand, const TokenLayout& layout) {
  return layout.inRows(operand.rowWidth, operand.rowStride);
}

/// For an attention that is a step by itself.
void takeRowStrides(const StepRequest& request, AttentionProblem& problem) {
  TokenLayout* const layouts[] = {&problem.layouts.q, &problem.layouts.k, &problem.layouts.v};
  TokenLayout* const gradients[] = {&problem.gradients.q, &problem.gradients.k, &problem.gradients.v};
  for (std::size_t slot = 0; slot < std::size(layouts); ++slot) {
    const AttentionPlaces::Heads& heads = problem.places.heads[slot];
    *layouts[slot] = inRowsOf(findOperand(request, heads.input), *layouts[slot]);
    *gradients[slot] = inRowsOf(findOperand(request, heads.gradient), *gradients[slot]);
  }
  problem.layouts.y = inRowsOf(findOperand(request, {0, OperandKind::Output, 0}), problem.layouts.y);
  problem.gradients.y = inRowsOf(findOperand(request, {0, OperandKind::GradOutput, 0}), problem.gradients.y);
}

}  // namespace

Result<AttentionProblem> attentionProblem(const StepRequest& request, int attention) {
  const auto member = static_cast<std::size_t>(attention);
  const std::vector<TensorSpec> inputs = request.graph.inputSpecs(request.step.nodes[member]);
  const auto shapeAt = [&](int slot) { return slot < 0 ? Shape() : inputs[static_cast<std::size_t>(slot)].shape; };
  AttentionProblem problem{.form = attentionForm(computedAttributes(request.member(member))),
                           .dtype = inputs[AttentionForm::kQuery].dtype};
  const Shape shapes[] = {shapeAt(AttentionForm::kQuery), shapeAt(AttentionForm::kKey), shapeAt(AttentionForm::kValue)};
  const Result<AttentionLayouts> layouts = attentionLayouts(problem.form, shapes);
  if (!layouts) return layouts.error();
  problem.layouts = problem.gradients = *layouts;
  if (request.step.nodes.size() == 1) takeRowStrides(request, problem);
  problem.biasShape = shapeAt(problem.form.biasSlot);
  problem.maskShape = shapeAt(problem.form.maskSlot);
  if (problem.form.hasBias()) problem.biasDType = inputs[static_cast<std::size_t>(problem.form.biasSlot)].dtype;
  const int sums = problem.form.cuSeqlensQSlot;
  problem.numSequences = sums < 0 ? layouts->q.batch : numSequences(inputs[static_cast<std::size_t>(sums)]);
  return problem;
}

namespace {

HeadBinding columnsOf(const StepRequest& request, const AttentionProblem& problem, const OperandKey& key,
                      std::int64_t firstElement) {
  return {.whole = findOperand(request, key), .firstByte = firstElement * sizeBytes(problem.dtype)};
}

}  // namespace

HeadBinding findHeads(const StepRequest& request, const AttentionProblem& problem, std::size_t slot) {
  const AttentionPlaces::Heads& heads = problem.places.heads[slot];
  return columnsOf(request, problem, heads.input, heads.firstElement);
}

HeadBinding findHeadGradient(const StepRequest& request, const AttentionProblem& problem, std::size_t slot) {
  const AttentionPlaces::Heads& heads = problem.places.heads[slot];
  return columnsOf(request, problem, heads.gradient, heads.firstElement);
}

Binding findAttentionOperand(const StepRequest& request, const AttentionProblem& problem, OperandKind kind, int slot) {
  return slot < 0 ? Binding() : findOperand(request, {problem.places.attention, kind, slot});
}

}  // namespace fuseline
