// NcclCommunicator: the collectives of one rank between GPUs, on the stream of its backend.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/collective/communicator.h"
#include "core/support/result.h"
#include "kernels/cuda/collective/nccl_membership.h"
#include "kernels/cuda/stream/stream.h"

#include <memory>

namespace fuseline::cuda {

/// Parts of one collective are one group: one latency. With SumOrder::Ranks the ranks exchange slices, each adds its
/// own in rank order, and an all-reduce exchanges the sums. The streams belong to the selected device. besides: the
/// stream of collectives between begin() and await(); it waits for the other stream by events only.
std::unique_ptr<Communicator> makeNcclCommunicator(std::shared_ptr<NcclMembership> membership, SumOrder order,
                                                   Stream stream, Stream besides);

}  // namespace fuseline::cuda
