// Fusion rules as text, and which of them an op may join.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/rule.h"

#include <string>
#include <vector>

namespace fuseline {

/// "BasicLinear → [Bias] → GELU": optional steps in brackets, repeated ones with a plus sign.
std::string patternText(const FusionRule& rule);

/// Name of the list that contains the rule: "forward", "joint", ...
std::string listName(FusionPass pass);

/// Rules with a step that accepts the op or, for a composite, one of its parts.
std::vector<const FusionRule*> rulesFor(const FusibleOperation& operation);

}  // namespace fuseline
