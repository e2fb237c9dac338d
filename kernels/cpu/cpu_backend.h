// CpuBackend: runs plans on this machine's CPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/backend.h"
#include "core/support/result.h"

#include <memory>

namespace fuseline::cpu {

struct CpuOptions {
  /// 0: one thread per physical core that this process may use (OMP_NUM_THREADS wins).
  int threads = 0;
  /// Auto: bf16 GEMMs run natively if the CPU has the instructions, else through float32 copies.
  enum class Bf16Gemm { Auto, ThroughF32 } bf16Gemm = Bf16Gemm::Auto;
};

/// Never fails: a CPU is always there.
std::shared_ptr<Backend> makeCpuBackend(const CpuOptions& options = {});

}  // namespace fuseline::cpu
