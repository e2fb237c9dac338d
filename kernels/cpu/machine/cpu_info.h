// What this CPU is and what of it this process may use.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"

namespace fuseline::cpu {

/// Physical cores that the process may run on: affinity and cgroup quota considered, at least 1.
int availableCores();

/// OMP_NUM_THREADS where it is set to a number, else availableCores().
int defaultThreads();

/// Of one last-level cache, of which there may be several; a usual size where the system does not say.
std::int64_t lastLevelCacheBytes();

/// Does oneDNN multiply bf16 with the CPU's own instructions?
bool hasNativeBf16Gemm();

/// `threads` is what the backend will use.
DeviceInfo describeCpu(int threads);

}  // namespace fuseline::cpu
