// The peak bandwidth and FLOP/s of this machine, measured now, for comparison with timings.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"

namespace fuseline::cpu {

/// Copies arrays beyond the last-level cache; multiplies in registers, bf16 by vectors or tiles (0: the CPU has no
/// instructions for it). Takes about half a second. Bandwidth drifts with other load on a shared machine: compare only
/// with timings of the same minute. threads: 0 means defaultThreads().
DevicePeaks measurePeaks(int threads = 0);

}  // namespace fuseline::cpu
