// A group whose ranks are threads of this process.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/collective/communicator.h"

#include <memory>
#include <vector>

namespace fuseline {

/// One communicator for each of `ranks` ranks, in rank order. Each is for one thread; waiting threads sleep. Data goes
/// from tensor to tensor, without a copy between. A rank that the others wait for too long is named, and ends all.
std::vector<std::unique_ptr<Communicator>> makeInProcessGroup(int ranks, const Patience& patience = Patience());

}  // namespace fuseline
