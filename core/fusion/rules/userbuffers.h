// Shared parts of the Userbuffers fusions of both passes: ops, conditions, hardware.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/rule.h"

namespace fuseline::rules {

/// Completes a rule that has its name, pass and summary.
FusionRule userbuffersLinear(FusionRule rule);

}  // namespace fuseline::rules
