// The devices of the ranks of a run on this machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"

#include <memory>
#include <vector>

namespace fuseline {

struct RankPlaces {
  int ranks = 1;
  int own = -1;           // the rank of this process; -1: all ranks are threads of it
  int ranksOfDevice = 1;  // that share a device with memory of the host
};

/// One backend for each rank, nullptr for those of other processes. Ranks share a device with memory of the host;
/// otherwise `first` is that of rank 0, and the GPUs with the next numbers are those of the others: cuda:0, cuda:1.
/// Errors (NoDevice): there are too few, with their number; they are of different architectures; ranks are processes.
Result<std::vector<std::shared_ptr<Backend>>> openRankDevices(const BackendRegistry& registry,
                                                              const std::shared_ptr<Backend>& first,
                                                              const RankPlaces& places);

}  // namespace fuseline
