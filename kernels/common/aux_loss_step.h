// The operands of MoEAuxLoss.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/moe_loss_form.h"
#include "core/runtime/step_operand.h"

#include <vector>

namespace fuseline {

/// By layer. A gradient that is not wanted is absent.
struct AuxLossStep {
  struct Layer {
    Binding logits, counts, dLogits;
  };
  AuxLossForm form;
  std::vector<Layer> layers;
  Binding y, dy;

  std::int64_t experts() const { return layers.front().logits.spec.cols(); }
  /// The sum over all layers.
  std::int64_t tokens() const;
};

/// Both passes. Errors: the step has no such operand. It is a fault of the plan.
Result<AuxLossStep> auxLossStep(const StepRequest& request);

}  // namespace fuseline
