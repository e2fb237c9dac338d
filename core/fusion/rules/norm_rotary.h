// Fusions of a norm of each head with a rotary embedding, in either pass.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/rule.h"

namespace fuseline::rules {

/// name is the caller's.
FusionRule normRotary(FusionPass pass);

}  // namespace fuseline::rules
