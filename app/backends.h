// The backends of this build: the only list of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"

#include <memory>

namespace fuseline {

/// Devices: "cpu", "cuda:N" through the CUDA module, and "reference". A device that cannot run here is listed with
/// the reason. The CUDA module is loaded when it is first asked for, never at start.
std::unique_ptr<BackendRegistry> makeBackendRegistry();

/// What this machine's CPU can do at best, measured now: the denominators of a benchmark.
struct MachineRoofs {
  double copyGBps = 0.0;      // bytes read and written by a large copy
  double fmaF32Gflops = 0.0;  // float32 multiply-adds in registers
  double bf16Gflops = 0.0;    // bf16 dot products in registers; 0 when the CPU has none
};

/// Takes about a second. Errors (NoDevice): this build has no CPU kernels.
Result<MachineRoofs> measureMachineRoofs();

}  // namespace fuseline
