// The gates with attributes: shared parts of plain and scaled ops.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/activation.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fuseline::gates {

using Check = std::function<std::optional<Error>(const Attributes&)>;

/// limit, alpha, glu_linear_offset.
std::vector<AttributeSpec> clampedAttributes();
Check clampedCheck(std::string operation);
/// c sigmoid(alpha c) (clamp(b, -limit, limit) + glu_linear_offset), c = min(a, limit)
GateFunctions clamped(const Attributes& attributes);

/// beta1, beta2.
std::vector<AttributeSpec> situAttributes();
Check situCheck(std::string operation);
/// beta1 tanh(a / beta1) sigmoid(a) beta2 tanh(b / beta2)
GateFunctions situ(const Attributes& attributes);

/// The attributes followed by the others.
std::vector<AttributeSpec> joined(std::vector<AttributeSpec> attributes, std::vector<AttributeSpec> others);

}  // namespace fuseline::gates
