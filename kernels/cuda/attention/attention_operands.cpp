// From the op's form and the step's operands to plain data.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/attention_operands.h"

#include "kernels/cuda/attention/run_counts.h"
#include "kernels/cuda/elementwise/elementwise_program.h"

#include <stdexcept>
#include <utility>
#include <vector>

namespace fuseline::cuda {

namespace {

static_assert(static_cast<int>(ScoreBias::PreScale) == static_cast<int>(AttentionBias::PreScale) &&
              static_cast<int>(ScoreBias::Alibi) == static_cast<int>(AttentionBias::Alibi));

ScoreTensor scoreTensor(const Shape& shape, const std::byte* data) {
  if (shape.empty()) return {};
  const ScoreLayout layout = scoreLayout(shape);
  return {.data = data, .batchStride = layout.batchStride, .headStride = layout.headStride};
}

}  // namespace

HeadRows allHeadRows(const AttentionProblem& problem, const TokenLayout& layout, std::byte* to) {
  return {.element = elementOf(problem.dtype),
          .to = to,
          .units = layout.batch * layout.heads,
          .groups = layout.heads,
          .tokens = layout.tokens,
          .channels = layout.channels,
          .batchStride = layout.batchStride,
          .tokenStride = layout.tokenStride};
}

MaskedProduct maskedProduct(const AttentionProblem& problem, const ScoreRules& rules, const AttentionPass& pass,
                            const TokenLayout& right, const TokenLayout& result) {
  return {.rules = rules,
          .pass = pass,
          .element = elementOf(problem.dtype),
          .channels = right.channels,
          .rightBatchStride = right.batchStride,
          .rightTokenStride = right.tokenStride,
          .resultBatchStride = result.batchStride,
          .resultTokenStride = result.tokenStride};
}

namespace {

HeadBinding findColumns(const CompileRequest& request, const AttentionProblem& problem, const OperandKey& key,
                        std::int64_t firstElement) {
  return {.whole = findOperand(request, key), .firstByte = firstElement * sizeBytes(problem.dtype)};
}

Binding findOther(const CompileRequest& request, const AttentionProblem& problem, int slot) {
  return slot < 0 ? Binding() : findOperand(request, {problem.places.attention, OperandKind::Input, slot});
}

}  // namespace

HeadBinding findHeads(const CompileRequest& request, const AttentionProblem& problem, std::size_t slot) {
  const AttentionPlaces::Heads& heads = problem.places.heads[slot];
  return findColumns(request, problem, heads.input, heads.firstElement);
}

HeadBinding findHeadGradient(const CompileRequest& request, const AttentionProblem& problem, std::size_t slot) {
  const AttentionPlaces::Heads& heads = problem.places.heads[slot];
  return findColumns(request, problem, heads.gradient, heads.firstElement);
}

Result<AttentionProblem> attentionProblem(const CompileRequest& request, int attention) {
  const auto member = static_cast<std::size_t>(attention);
  const std::vector<TensorSpec> inputs = request.graph.inputSpecs(request.step.nodes[member]);
  const auto shapeAt = [&](int slot) { return slot < 0 ? Shape() : inputs[static_cast<std::size_t>(slot)].shape; };
  AttentionProblem problem{.form = attentionForm(request.member(member).attributes),
                           .dtype = inputs[AttentionForm::kQuery].dtype};
  const Shape shapes[] = {shapeAt(AttentionForm::kQuery), shapeAt(AttentionForm::kKey), shapeAt(AttentionForm::kValue)};
  const Result<AttentionLayouts> layouts = attentionLayouts(problem.form, shapes);
  if (!layouts) return layouts.error();
  problem.layouts = *layouts;
  problem.biasShape = shapeAt(problem.form.biasSlot);
  problem.maskShape = shapeAt(problem.form.maskSlot);
  if (problem.form.hasBias()) problem.biasDType = inputs[static_cast<std::size_t>(problem.form.biasSlot)].dtype;
  const int sums = problem.form.cuSeqlensQSlot;
  problem.numSequences = sums < 0 ? layouts->q.batch : numSequences(inputs[static_cast<std::size_t>(sums)]);
  return problem;
}

AttentionRuleOperands::AttentionRuleOperands(const CompileRequest& request, const AttentionProblem& problem)
    : m_bias(findOther(request, problem, problem.form.biasSlot)),
      m_mask(findOther(request, problem, problem.form.maskSlot)),
      m_sumsQ(findOther(request, problem, problem.form.cuSeqlensQSlot)),
      m_sumsKv(findOther(request, problem, problem.form.cuSeqlensKvSlot)),
      m_offset(findOperand(request, {problem.places.attention, OperandKind::Parameter, AttentionForm::kOffset})) {}

void AttentionRuleOperands::checkOnce(const AttentionProblem& problem, Pointers pointers, const DeviceContext& device) {
  if (std::exchange(m_isChecked, true) || !m_sumsQ) return;
  const Result<std::vector<AttentionSequence>> sequences = attentionSequences(
      problem.form, problem.layouts, readCounts(m_sumsQ, pointers, device), readCounts(m_sumsKv, pointers, device));
  if (!sequences) throw std::runtime_error(sequences.error().message);
}

ScoreRules AttentionRuleOperands::at(const AttentionProblem& problem, Pointers pointers) const {
  const AttentionForm& form = problem.form;
  const bool isLearnable = form.softmax == SoftmaxType::Learnable;
  return {.queries = problem.layouts.q.tokens,
          .keys = problem.layouts.k.tokens,
          .heads = form.heads,
          .groups = form.groups,
          .isPacked = form.format == QkvFormat::Thd,
          .numSequences = problem.numSequences,
          .sumsQ = countsAt(m_sumsQ, pointers),
          .sumsKv = countsAt(m_sumsKv, pointers),
          .left = form.left,
          .right = form.right,
          .isBottomRight = form.isBottomRight,
          .biasKind = static_cast<ScoreBias>(form.bias),
          .biasElement = elementOf(problem.biasDType),
          .bias = scoreTensor(problem.biasShape, m_bias.at(pointers)),
          .mask = scoreTensor(problem.maskShape, m_mask.at(pointers)),
          .scale = static_cast<float>(form.scale),
          .softcap = static_cast<float>(form.softcap),
          .hasDropout = form.dropout > 0.0,
          .dropout = deviceMask(form.dropoutMask),
          .kept = static_cast<float>(form.keptScale()),
          .sinks = isLearnable ? reinterpret_cast<const float*>(m_offset.at(pointers)) : nullptr,
          .hasSink = form.hasSink()};
}

}  // namespace fuseline::cuda
