// Facts about this CPU, and the part of it that this process may use.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"

namespace fuseline::cpu {

/// Physical cores that the process may run on: affinity and cgroup quota considered, at least 1.
int availableCores();

/// OMP_NUM_THREADS if it is set to a number, else availableCores().
int defaultThreads();

/// Size of one last-level cache (there may be several); a typical size if the system does not report it.
std::int64_t lastLevelCacheBytes();

/// Does oneDNN multiply bf16 with the CPU's own instructions?
bool hasNativeBf16Gemm();
/// Do they use AMX?
bool hasAmxGemm();

/// `threads`: the number that the backend will use.
DeviceInfo describeCpu(int threads);

}  // namespace fuseline::cpu
