// Chains that several rules share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/fusion/rule.h"

#include <vector>

namespace fuseline::rules {

/// An elementwise op, perhaps gated, and one or more that are not: a gated op changes the grid of later ops.
std::vector<ChainStep> elementwiseChain();

/// A linear, perhaps its bias, and a run of elementwise ops with one output each, the first of them perhaps gated.
std::vector<ChainStep> linearEpilogueChain();

}  // namespace fuseline::rules
