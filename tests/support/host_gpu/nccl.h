// NCCL for the GPUs of host memory: ranks are threads, each with a device.
// SPDX-License-Identifier: Apache-2.0
// Behavior that NCCL allows is made unfavorable, and calls that it refuses are refused: groups are in progress when
// they end, sums are rounded at every rank and not in rank order, unequal calls of the ranks and two ranks on one GPU
// are errors, and a collective waits for ever for a rank that never comes.
#pragma once

#include <cstddef>

namespace fuseline::host_gpu {

/// The version that ncclGetVersion reports: 22809, or FUSELINE_HOST_NCCL in the environment; 0: the library is missing.
/// Returns the former value.
int setNcclVersion(int version);

/// The collective of this rank after `count` more of them fails with an asynchronous error of this rank only.
void failInCollective(int rank, int count);

/// The device of this rank hangs before its collective after `count` more of them, whatever is aborted, until it is
/// released.
void hangInCollective(int rank, int count);
void releaseHungDevices();

/// Communicators that were neither destroyed nor aborted.
std::size_t numCommunicators();
/// Collectives that all ranks took part in so far, and how many of them a graph launched.
std::size_t numCollectives();
std::size_t numReplayedCollectives();

}  // namespace fuseline::host_gpu
