// The devices of the ranks of a run on this machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"

#include <memory>
#include <vector>

namespace fuseline {

/// One backend for each rank. Ranks share a device with memory of the host; otherwise `first` is that of rank 0, and
/// the GPUs with the next numbers are those of the others: cuda:0, cuda:1. Errors (NoDevice): there are too few, with
/// their number; they are of different architectures.
Result<std::vector<std::shared_ptr<Backend>>> openRankDevices(const BackendRegistry& registry,
                                                              const std::shared_ptr<Backend>& first, int ranks);

}  // namespace fuseline
