// The tensors of an attention step, and what kernels must know of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/packed_attention.h"
#include "kernels/cuda/attention/attention_launch.h"
#include "kernels/cuda/kernel_def.h"

#include <cstdint>

namespace fuseline::cuda {

/// An attention without its pointers.
struct AttentionProblem {
  AttentionForm form;
  AttentionLayouts layouts;
  DType dtype = DType::F32;  // of x, k, v, y and their gradients
  DType biasDType = DType::F32;
  Shape biasShape;  // empty: none
  Shape maskShape;
  std::int64_t numSequences = 1;
  AttentionPlaces places = ownPlaces();

  std::int64_t units() const { return layouts.q.batch * form.groups; }
};

/// Problem for the node's own tensors. attention: its member.
Result<AttentionProblem> attentionProblem(const CompileRequest& request, int attention = 0);

/// Heads among the columns of an operand.
struct HeadBinding {
  Binding whole;
  std::int64_t firstByte = 0;

  explicit operator bool() const { return static_cast<bool>(whole); }
  std::byte* at(Pointers pointers) const {
    std::byte* const first = whole.at(pointers);
    return first ? first + firstByte : nullptr;
  }
};
/// Queries, keys or values, and their gradient. Absent if the step has no such operand.
HeadBinding findHeads(const CompileRequest& request, const AttentionProblem& problem, std::size_t slot);
HeadBinding findHeadGradient(const CompileRequest& request, const AttentionProblem& problem, std::size_t slot);

/// All heads of a tensor of the problem's dtype at `to`; zeros are written unless `from` is set.
HeadRows allHeadRows(const AttentionProblem& problem, const TokenLayout& layout, std::byte* to);

/// A product of scores of a pass with keys or values, whose masked pairs must not count.
MaskedProduct maskedProduct(const AttentionProblem& problem, const ScoreRules& rules, const AttentionPass& pass,
                            const TokenLayout& right, const TokenLayout& result);

/// Inputs of forward and backward besides x, k and v.
class AttentionRuleOperands {
 public:
  AttentionRuleOperands(const CompileRequest& request, const AttentionProblem& problem);

  /// Sums of lengths are data that stay the same from run to run: the host checks them in the first one. Throws
  /// std::runtime_error where they are not legal.
  void checkOnce(const AttentionProblem& problem, Pointers pointers, const DeviceContext& device);
  ScoreRules at(const AttentionProblem& problem, Pointers pointers) const;

 private:
  Binding m_bias, m_mask, m_sumsQ, m_sumsKv, m_offset;
  bool m_isChecked = false;
};

}  // namespace fuseline::cuda
