// Steps of DotProductAttention.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/packed_attention.h"
#include "core/ops/attention_form.h"
#include "core/runtime/step_operand.h"

#include <cstddef>
#include <cstdint>

namespace fuseline {

/// An attention without its pointers.
struct AttentionProblem {
  AttentionForm form;
  AttentionLayouts layouts;
  AttentionLayouts gradients;  // of q, k, v and y
  DType dtype = DType::F32;    // of q, k, v, y and their gradients
  DType biasDType = DType::F32;
  Shape biasShape;  // empty: none
  Shape maskShape;
  std::int64_t numSequences = 1;
  AttentionPlaces places = ownPlaces();

  std::int64_t units() const { return layouts.q.batch * form.groups; }
};

/// Problem for the node's own tensors, which may be other than those of the step. attention: its member. Errors: the
/// tensors do not fit the attributes.
Result<AttentionProblem> attentionProblem(const StepRequest& request, int attention = 0);

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
HeadBinding findHeads(const StepRequest& request, const AttentionProblem& problem, std::size_t slot);
HeadBinding findHeadGradient(const StepRequest& request, const AttentionProblem& problem, std::size_t slot);

/// Another operand of the attention; slot -1: it has no such tensor.
Binding findAttentionOperand(const StepRequest& request, const AttentionProblem& problem, OperandKind kind, int slot);

}  // namespace fuseline
