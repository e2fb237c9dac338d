// Fusions of a Split with the rotary embeddings of its parts, in either pass.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/rule.h"

namespace fuseline::rules {

/// name and pass are the caller's.
FusionRule splitRotary(FusionPass pass, bool hasBias);

}  // namespace fuseline::rules
