// What the Userbuffers fusions of both passes share: ops, conditions, hardware.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/rule.h"

namespace fuseline::rules {

/// Completes a rule that has its name, pass and summary.
FusionRule userbuffersLinear(FusionRule rule);

}  // namespace fuseline::rules
