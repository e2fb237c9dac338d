// Shared parts of the fusions of a grouped MLP: its conditions, tensors kept for backward, hardware.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/rule.h"

#include <string>
#include <vector>

namespace fuseline::rules {

/// Completes a joint rule that has its name and summary. activations: the ops between the two linears.
FusionRule groupedMlp(FusionRule rule, std::vector<std::string> activations);

}  // namespace fuseline::rules
