// The tensors of an attention step, and what kernels must know of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/common/attention_step.h"
#include "kernels/cuda/attention/attention_launch.h"
#include "kernels/cuda/kernel_def.h"

#include <cstdint>

namespace fuseline::cuda {

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
