// From the op's form and the step's operands to plain data.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/attention_operands.h"

#include "kernels/cuda/attention/run_counts.h"
#include "kernels/cuda/elementwise/elementwise_program.h"

#include <stdexcept>
#include <utility>

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
          .tokenStride = layout.tokenStride,
          .headStride = layout.headStride};
}

MaskedProduct maskedProduct(const AttentionProblem& problem, const ScoreRules& rules, const AttentionPass& pass,
                            const TokenLayout& right, const TokenLayout& result) {
  return {.rules = rules,
          .pass = pass,
          .element = elementOf(problem.dtype),
          .channels = right.channels,
          .rightBatchStride = right.batchStride,
          .rightTokenStride = right.tokenStride,
          .rightHeadStride = right.headStride,
          .resultBatchStride = result.batchStride,
          .resultTokenStride = result.tokenStride,
          .resultHeadStride = result.headStride};
}

AttentionRuleOperands::AttentionRuleOperands(const CompileRequest& request, const AttentionProblem& problem)
    : m_bias(findAttentionOperand(request, problem, OperandKind::Input, problem.form.biasSlot)),
      m_mask(findAttentionOperand(request, problem, OperandKind::Input, problem.form.maskSlot)),
      m_sumsQ(findAttentionOperand(request, problem, OperandKind::Input, problem.form.cuSeqlensQSlot)),
      m_sumsKv(findAttentionOperand(request, problem, OperandKind::Input, problem.form.cuSeqlensKvSlot)),
      m_offset(findAttentionOperand(request, problem, OperandKind::Parameter, AttentionForm::kOffset)) {}

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
          .largestOffset = largestOffset(form, problem.layouts.q),
          .scale = static_cast<float>(form.scale),
          .softcap = static_cast<float>(form.softcap),
          .hasDropout = form.dropout > 0.0,
          .dropout = deviceMask(form.dropoutMask),
          .kept = static_cast<float>(form.keptScale()),
          .sinks = isLearnable ? reinterpret_cast<const float*>(m_offset.at(pointers)) : nullptr,
          .hasSink = form.hasSink()};
}

}  // namespace fuseline::cuda
