// Medians of rounds, by the GPU's own clock.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/machine/peaks.h"

#include "core/profile/stats.h"
#include "kernels/cuda/gemm/gemm_timer.h"
#include "kernels/cuda/memory/arena.h"
#include "kernels/cuda/stream/event_clock.h"
#include "kernels/cuda/support/check.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <vector>

namespace fuseline::cuda {

namespace {

/// Several times the L2 cache of any GPU.
constexpr std::array kCopyBytes = {std::size_t{256} << 20, std::size_t{512} << 20, std::size_t{1} << 30};
constexpr int kCopyRounds = 15;
/// Between two events, so that the gap before the first is no part of the time that counts.
constexpr int kCopiesOfARound = 8;

/// Products this large keep every multiprocessor busy.
constexpr std::int64_t kProductExtent = 8192;
/// A GPU lowers its clock under a load that lasts.
constexpr std::chrono::milliseconds kProductTime{300};
constexpr int kFewestProducts = 9;
constexpr int kWarmUps = 3;

double median(const std::vector<double>& samples) { return summarize(samples).median; }

double copyNs(std::size_t sizeBytes, DeviceClock& clock, Stream stream) {
  const Arena from(sizeBytes);
  const Arena to(sizeBytes);
  check(cudaMemsetAsync(from.data(), 1, sizeBytes, stream), "fill memory for timing");
  std::vector<double> samplesNs;
  for (int round = 0; round <= kCopyRounds; ++round) {
    clock.mark(0);
    for (int i = 0; i < kCopiesOfARound; ++i)
      check(cudaMemcpyAsync(to.data(), from.data(), sizeBytes, cudaMemcpyDeviceToDevice, stream), "copy memory");
    clock.mark(1);
    check(cudaStreamSynchronize(stream), "copy memory");
    if (round > 0) samplesNs.push_back(clock.nanosecondsBetween(0, 1) / kCopiesOfARound);
  }
  return median(samplesNs);
}

/// Copy bandwidth in GB/s, at the size that suits the GPU best.
double copyGBps(int device, Stream stream) {
  const std::unique_ptr<DeviceClock> clock = makeEventClock(device, stream, 2);
  double best = 0.0;
  for (const std::size_t sizeBytes : kCopyBytes)
    best = std::max(best, 2.0 * static_cast<double>(sizeBytes) / copyNs(sizeBytes, *clock, stream));
  return best;
}

/// Forward of a linear layer: FP8 takes no other order on Hopper.
GemmProblem plainProduct(DType dtype) {
  return {.m = kProductExtent,
          .n = kProductExtent,
          .k = kProductExtent,
          .b = Storage2d::Transposed,
          .factorType = dtype,
          .cType = dtype};
}

GemmProblem codedProduct() {
  GemmProblem problem = plainProduct(DType::BF16);
  problem.aCodes = problem.bCodes = FactorCodes{};
  problem.isFastAccumulated = true;
  return problem;
}

double productNs(CandidateTimer& timer) {
  for (int i = 0; i < kWarmUps; ++i) timer.timeNs(0);
  std::vector<double> samplesNs;
  const auto end = timer.spent() + kProductTime;
  while (timer.spent() < end || samplesNs.size() < kFewestProducts) samplesNs.push_back(*timer.timeNs(0));
  return median(samplesNs);
}

Result<double> productGflops(const GemmProblem& problem, Stream stream, GemmLibrary& gemms) {
  const Result<std::unique_ptr<Gemm>> gemm = gemms.prepare(problem);
  if (!gemm) return gemm.error();
  const auto launch = [&](std::size_t, const GemmPointers& pointers, std::byte* workspace) {
    (*gemm)->multiply(pointers, workspace, stream);
  };
  const auto timer = makeGemmTimer(problem, (*gemm)->workspaceBytes(), launch, stream);
  const double flops = 2.0 * static_cast<double>(problem.m * problem.n * problem.k);
  return flops / productNs(*timer);
}

}  // namespace

Result<DevicePeaks> measurePeaks(int device, Stream stream, GemmLibrary& gemms) {
  const Result<double> f32 = productGflops(plainProduct(DType::F32), stream, gemms);
  if (!f32) return f32.error();
  const Result<double> bf16 = productGflops(plainProduct(DType::BF16), stream, gemms);
  if (!bf16) return bf16.error();
  const Result<double> fp8 = productGflops(codedProduct(), stream, gemms);
  return DevicePeaks{
      .copyGBps = copyGBps(device, stream), .fmaF32Gflops = *f32, .bf16Gflops = *bf16, .fp8Gflops = fp8 ? *fp8 : 0.0};
}

}  // namespace fuseline::cuda
