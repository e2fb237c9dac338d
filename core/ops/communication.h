// Shared parts of the collectives: they act on the first axis, and with one rank they are views.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/operation.h"

namespace fuseline {

/// Completes a collective: category, note and mathematics. `op` has its texts, ports and inferOnRanks.
BasicOperation communication(BasicOperation op);

}  // namespace fuseline
