// The number of a thread's launches on the device, used to count a step's launches.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace fuseline::cuda {

/// Kernels, calls of cuBLASLt (which may launch more than one kernel, and a fill), copies and fills, by this thread.
inline thread_local std::int64_t numLaunched = 0;

}  // namespace fuseline::cuda
