// Explains why legal fusions were not chosen: others that need the same ops gain more.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/fuser.h"

namespace fuseline {

/// Sets the explanations of attempts that lost ops to other fusions of their pass, by the savings that the report has
/// now.
void explainLost(const Graph& graph, const FusionOptions& options, FusionReport& report);

}  // namespace fuseline
