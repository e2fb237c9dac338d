// Steps of DotProductAttention.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/attention_form.h"
#include "core/runtime/step_operand.h"

#include <cstdint>

namespace fuseline {

/// An attention without its pointers.
struct AttentionProblem {
  AttentionForm form;
  AttentionLayouts layouts;
  DType dtype = DType::F32;  // of q, k, v, y and their gradients
  DType biasDType = DType::F32;
  Shape biasShape;  // empty: none
  Shape maskShape;
  std::int64_t numSequences = 1;

  std::int64_t units() const { return layouts.q.batch * form.groups; }
};

/// Problem for the node's own tensors, which may be other than those of the step. Errors: they do not fit the
/// attributes.
Result<AttentionProblem> attentionProblem(const StepRequest& request);

}  // namespace fuseline
