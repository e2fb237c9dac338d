// Collectives beside the steps that do not need them: each begins at its step and ends where it is needed.
// Source: TransformerEngine sends an input gradient beside the weight gradient, and gathers the input again beside it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan/plan.h"

#include <vector>

namespace fuseline {

/// The step that ends what `begin` begins. Its operands keep their memory until then.
Step waitFor(const Step& begin);

/// Splits every whole collective in two steps where work lies between it and the first step that needs its results,
/// writes what it sends, or communicates. viewOf: by tensor the one whose memory it has, itself for most.
void overlapCollectives(Plan& plan, const std::vector<int>& viewOf);

}  // namespace fuseline
