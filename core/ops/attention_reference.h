// The double-precision mathematics of DotProductAttention: one row of scores after the other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/attention_form.h"
#include "core/ops/operation.h"

#include <span>

namespace fuseline {

/// inputs, parameters: as the form says. Throws std::invalid_argument where sums of sequence lengths are not legal:
/// they are known at run time only.
ReferenceForward attentionForward(const AttentionForm& form, std::span<const ReferenceTensor> inputs,
                                  std::span<const ReferenceTensor> parameters);

/// From all inputs, the parameter, the output and the log-sum-exp. numInputs: of the op.
ReferenceBackward attentionBackward(const AttentionForm& form, const SavedValues& saved, const ReferenceTensor& dy,
                                    std::size_t numInputs);

}  // namespace fuseline
