// Which GPUs run code that was compiled for others: machine code those of its major number, PTX all that came later.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/quant/recipe.h"
#include "core/support/result.h"

#include <span>
#include <string>
#include <string_view>

namespace fuseline::cuda {

/// The oldest GPUs that multiply bfloat16 by tensor cores.
inline constexpr ComputeCapability kOldestGpu = {8, 0};

/// Whether kernels run on a GPU that were compiled for targets as CMake writes them: "80-real 120 90a"; the
/// sentence why not.
Verdict hasKernelsFor(ComputeCapability gpu, std::string_view targets);

/// NVRTC's target for a GPU: "sm_86", or, if it knows none with that major number, PTX of the newest that it knows,
/// "compute_120". known: as nvrtcGetSupportedArchs lists them, 86 for 8.6; ascending.
std::string nvrtcTargetFor(ComputeCapability gpu, std::span<const int> known);

}  // namespace fuseline::cuda
