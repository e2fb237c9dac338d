// The limits of this machine, measured now: what a timing is compared with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace fuseline::cpu {

struct CpuRoofs {
  double copyGBps = 0.0;      // bytes read plus bytes written, arrays beyond the last-level cache
  double fmaF32Gflops = 0.0;  // float32 multiply-adds in registers
  double bf16Gflops = 0.0;    // bf16 dot products in registers, of vectors or tiles; 0: the CPU has none
  int threads = 1;
};

/// Takes about half a second. Bandwidth drifts with the neighbours of a shared machine: compare only with timings
/// of the same minute. threads: 0 means defaultThreads().
CpuRoofs measureRoofs(int threads = 0);

}  // namespace fuseline::cpu
