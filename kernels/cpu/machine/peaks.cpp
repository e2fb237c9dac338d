// Every peak is the best of several short rounds; of fewer when other programs make the rounds long.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/machine/peaks.h"

#include "kernels/cpu/machine/cpu_info.h"
#include "kernels/cpu/machine/cpu_memory.h"
#include "kernels/cpu/machine/peak_functions.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include <omp.h>

namespace fuseline::cpu {

namespace {

constexpr int kRounds = 7;
constexpr double kPatienceSeconds = 1.0;  // for the rounds of one peak
constexpr std::int64_t kRegisterIterations = 1 << 20;

double secondsOf(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The largest rate of several rounds, in units of 1e9 per second.
double bestRate(double amount, const auto& work) {
  double best = 0.0;
  double spent = 0.0;
  for (int round = 0; round < kRounds && spent < kPatienceSeconds; ++round) {
    const double seconds = secondsOf(work);
    best = std::max(best, amount / seconds * 1e-9);
    spent += seconds;
  }
  return best;
}

double copyRate(int threads) {
  const std::int64_t bytes = std::clamp(2 * lastLevelCacheBytes(), std::int64_t{64} << 20, std::int64_t{256} << 20);
  auto from = allocateCpuMemory(static_cast<std::size_t>(bytes));
  auto to = allocateCpuMemory(static_cast<std::size_t>(bytes));
  if (!from || !to) return 0.0;
  const auto copy = [&] {
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int thread = 0; thread < threads; ++thread) {
      const std::int64_t first = bytes * thread / threads;
      const std::int64_t last = bytes * (thread + 1) / threads;
      std::memcpy((*to)->data() + first, (*from)->data() + first, static_cast<std::size_t>(last - first));
    }
  };
  copy();
  return bestRate(2.0 * static_cast<double>(bytes), copy);
}

/// loop(iterations, sink) returns the operations that one thread did.
double registerRate(int threads, double (*loop)(std::int64_t, float&)) {
  std::vector<double> operations(static_cast<std::size_t>(threads), 0.0);
  volatile float keep = 0.0F;
  const auto work = [&] {
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int thread = 0; thread < threads; ++thread) {
      float sink = 0.0F;
      operations[static_cast<std::size_t>(thread)] = loop(kRegisterIterations, sink);
      keep = sink;
    }
  };
  work();
  double total = 0.0;
  for (const double count : operations) total += count;
  return total == 0.0 ? 0.0 : bestRate(total, work);
}

}  // namespace

DevicePeaks measurePeaks(int threads) {
  const int used = threads > 0 ? threads : defaultThreads();
  return {.copyGBps = copyRate(used),
          .fmaF32Gflops = registerRate(used, multiplyAddInRegisters),
          .bf16Gflops = std::max(registerRate(used, bf16DotInRegisters), registerRate(used, bf16TilesInRegisters))};
}

}  // namespace fuseline::cpu
