// A communicator whose other ranks are not there: for the computing time of one rank of many.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/collective/communicator.h"

#include <memory>

namespace fuseline {

/// Rank 0 of `ranks`. Collectives take the rank's own tensors for those of the others, so that sizes are right and
/// values mean nothing.
std::shared_ptr<Communicator> makeLoneRank(int ranks);
/// The same for memory of a device: collectives do nothing.
std::unique_ptr<Communicator> makeLoneDevice(int ranks);
/// Is it made by makeLoneRank()?
bool isLoneRank(const Communicator& communicator);

}  // namespace fuseline
