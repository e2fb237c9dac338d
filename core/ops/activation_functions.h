// The scalar functions of activations: reference, expression, derivative and cost of each.
// A NaN input gives a NaN output, in derivatives too.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/activation.h"

namespace fuseline::functions {

/// 1 / (1 + exp(-x))
ScalarFunction sigmoid();
/// The tanh form.
ScalarFunction gelu();
/// x (1 + erf(x / sqrt(2))) / 2
ScalarFunction exactGelu();
/// The form that the attribute `approximate` names.
ScalarFunction geluOf(const Attributes& attributes);
/// x sigmoid(1.702 x)
ScalarFunction quickGelu();
/// max(x, 0), its derivative 0 at 0.
ScalarFunction relu();
/// max(x, 0)^2
ScalarFunction squaredRelu();
/// (limit tanh(max(x, 0) / limit))^2, which approaches limit^2.
ScalarFunction softClampedSquaredRelu(double limit);
/// x sigmoid(x)
ScalarFunction silu();

/// c sigmoid(alpha c) with c = min(x, limit): there is no lower limit. The derivative is 0 above the limit.
ScalarFunction clampedSilu(double limit, double alpha);
/// clamp(x, -limit, limit) + offset. The derivative is 1 between the limits, both included.
ScalarFunction clampedLinear(double limit, double offset);

/// beta tanh(x / beta) sigmoid(x)
ScalarFunction situGate(double beta);
/// beta tanh(x / beta)
ScalarFunction softLimit(double beta);

}  // namespace fuseline::functions
