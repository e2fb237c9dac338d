// The masks and biases of attention, as far as they are known without a run: a mask type, or numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/export/onnx/onnx_attention_parts.h"

#include <optional>

namespace fuseline {

/// [1 or B, 1 or H, Sq, Sk]. Nothing: it depends on inputs of the model, or is large.
std::optional<NumberArray> addedScores(const AttentionParts& parts, OnnxNumbers& numbers, std::int64_t heads);

/// attn_mask_type, with window_size and bottom_right_diagonal where they are needed. Nothing: no such mask does what
/// the numbers do. Numbers of -10000 and less mask, if their rows have a 0, too; -inf always does.
std::optional<Json> namedMask(const NumberArray& added);

}  // namespace fuseline
