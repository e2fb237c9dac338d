// A communicator whose other ranks are not there: for the computing time of one rank of many.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/collective/communicator.h"

#include <memory>

namespace fuseline {

/// Rank 0 of `ranks`. Collectives take the rank's own tensors for those of the others, so that sizes are right and
/// values mean nothing.
std::shared_ptr<Communicator> makeLoneRank(int ranks);

}  // namespace fuseline
