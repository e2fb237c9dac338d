// Steps of RotaryPositionEmbedding.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/rotary_form.h"
#include "core/runtime/step_operand.h"

#include <cstdint>
#include <span>
#include <vector>

namespace fuseline {

struct RotaryStep {
  RotaryForm form;
  TokenLayout layout;
  Binding from, to;
  TokenLayout fromLayout, toLayout;   // as these stand in memory
  Binding cuSeqlens, startPositions;  // absent: the op has none
  bool isBackward = false;

  /// Is a token's position other than its index?
  bool hasPositions() const { return cuSeqlens || startPositions; }
  /// As rotaryPositions(). Throws std::runtime_error where the data, which come from the user, are not legal.
  std::vector<std::int64_t> positions(std::span<const std::int64_t> sums, std::span<const std::int64_t> starts) const;
};

/// Errors: x does not fit the attributes; those of requireOperand().
Result<RotaryStep> readRotary(const StepRequest& request);

}  // namespace fuseline
