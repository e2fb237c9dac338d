// The operands of TopKRouter, MoEPermute and MoEUnpermute.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/moe_form.h"
#include "core/runtime/step_operand.h"

#include <array>

namespace fuseline {

// Results that are not wanted are absent, and so are the operands of the other pass. Errors: the step lacks an operand
// that its pass reads. It is a fault of the plan.

struct RouterStep {
  RouterForm form;
  Binding x, bias, y, indices, counts;
  Binding dy, dx, dBias;  // of backward
};
Result<RouterStep> routerStep(const StepRequest& request);

struct PermuteStep {
  PermuteForm form;
  Binding x, indices, y, map, sizes;
  Binding dy, dx;  // of backward
};
Result<PermuteStep> permuteStep(const StepRequest& request);

struct UnpermuteStep {
  static constexpr int kRowIdMap = 1;  // slots of its inputs
  static constexpr int kProbs = 2;
  Binding x, map, probs, y;
  Binding dy, dx, dProbs;  // of backward
};
Result<UnpermuteStep> unpermuteStep(const StepRequest& request);

/// MoEUnpermute (member 0) and one or two AddExtraInput, whose other inputs are the addends. y is the last sum.
struct UnpermuteAddStep : UnpermuteStep {
  static constexpr int kMostAddends = 2;
  std::array<Binding, kMostAddends> addends;  // the second may be absent
};
Result<UnpermuteAddStep> unpermuteAddStep(const StepRequest& request);

}  // namespace fuseline
