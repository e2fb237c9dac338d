// Steps of linear layers: the tensors of their GEMMs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/step_operand.h"

#include <cstdint>

namespace fuseline {

/// x: [M, K], weight: [N, K], y: [M, N].
struct LinearSize {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  SplitAccumulators split = {};
};

LinearSize linearSize(const Node& node, const TensorSpec& x);

/// y = x W^T
struct LinearForwardStep {
  LinearSize size;
  Binding x, weight, y;
};

/// For member 0; y is the output of the last member, see requireResult(). Errors: those of requireOperand().
Result<LinearForwardStep> readLinearForward(const StepRequest& request);

/// Members of a backward step.
struct LinearGradMembers {
  int linear = 0;
  int gradOutput = 0;  // whose output gradient arrives
  int gradInput = 0;   // whose input gradient is the result
};

/// dx = dy W, or dW = dy^T x.
struct LinearGradStep {
  LinearSize size;
  Binding gradOutput;
  Binding factor;            // W, or x
  Binding result;            // see requireResult()
  bool isRequested = false;  // otherwise all others are absent
};

/// Errors: those of requireOperand().
Result<LinearGradStep> readInputGrad(const StepRequest& request, const LinearGradMembers& members);
Result<LinearGradStep> readWeightGrad(const StepRequest& request, const LinearGradMembers& members);

}  // namespace fuseline
