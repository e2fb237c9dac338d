// Times GEMMs of few rows with a constant weight: in E4M3, decoded directly before the multiplication, interleaved with
// the same GEMM in bf16 by the library, packed once.
//
// Usage: bench_coded_gemm [rounds]. A line has the median time of both, half the interquartile range, and the median
// over rounds of the bf16 time over the E4M3 time with its 95 % confidence interval. Every size has several weights, so
// that no cache keeps them from one GEMM to the next.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/coded_gemm.h"
#include "core/profile/stats.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/machine/cpu_memory.h"
#include "tests/bench/timing.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include <fmt/format.h>

namespace fuseline::cpu {
namespace {

/// The number of weights is chosen so that they fill this in bf16.
constexpr std::int64_t kWeightBytes = std::int64_t{1} << 30;

struct Size {
  std::int64_t m, n, k;
};

std::unique_ptr<DeviceMemory> filled(std::size_t size, unsigned pattern) {
  auto memory = *allocateCpuMemory(size);
  for (std::size_t i = 0; i < size; ++i) memory->data()[i] = static_cast<std::byte>(0x30 + (i * 37 + pattern) % 16);
  return memory;
}

struct Weight {
  std::unique_ptr<DeviceMemory> codes;
  Gemm plain;
};

std::string timeText(const std::vector<double>& seconds) {
  const SampleStats stats = summarize(seconds);
  return fmt::format("{:8.3f} ms +-{:4.1f} %", 1e3 * stats.median, stats.spreadPercent());
}

void measure(const Size& size, int rounds) {
  const CodedGemm coded(size.m, size.n, size.k, ElementFormat::E4M3);
  const GemmProblem problem{.m = size.m,
                            .n = size.n,
                            .k = size.k,
                            .b = Storage2d::Transposed,
                            .aType = DType::BF16,
                            .bType = DType::BF16,
                            .cType = DType::BF16,
                            .packing = Packing::OnceForever};
  const std::int64_t count = std::max<std::int64_t>(1, kWeightBytes / (2 * size.n * size.k));
  const auto a = filled(static_cast<std::size_t>(2 * size.m * size.k), 0);
  const auto c = filled(static_cast<std::size_t>(2 * size.m * size.n), 0);
  std::vector<Weight> weights;
  const auto scratch = filled(std::max(coded.workspaceBytes(), Gemm(problem).workspaceBytes()), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto b = filled(static_cast<std::size_t>(2 * size.n * size.k), static_cast<unsigned>(i));
    weights.push_back({*allocateCpuMemory(coded.packedBytes()), Gemm(problem)});
    coded.pack(b->data(), weights.back().codes->data());
    weights.back().plain.prepareB(b->data(), scratch->data());
  }
  std::vector<double> plainSeconds;
  std::vector<double> codedSeconds;
  for (int round = 0; round < rounds; ++round) {
    plainSeconds.push_back(secondsOf([&] {
                             for (Weight& weight : weights)
                               weight.plain.multiplyRows(a->data(), c->data(), size.m, scratch->data());
                           }) /
                           static_cast<double>(count));
    codedSeconds.push_back(secondsOf([&] {
                             for (Weight& weight : weights)
                               coded.multiply(a->data(), weight.codes->data(), 1.0F, c->data(), DType::BF16, size.m,
                                              scratch->data());
                           }) /
                           static_cast<double>(count));
  }
  const RatioStats ratio = compareRounds(plainSeconds, codedSeconds);
  fmt::print("{:>3} x {:>5} x {:>5}  bf16 {}  codes {}  {:5.2f} [{:4.2f}, {:4.2f}]\n", size.m, size.n, size.k,
             timeText(plainSeconds), timeText(codedSeconds), ratio.median, ratio.low, ratio.high);
}

}  // namespace
}  // namespace fuseline::cpu

int main(int argc, char** argv) {
  using namespace fuseline::cpu;
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 15;
  if (!canMultiplyCodes()) {
    fmt::print("This CPU has no AMX in bf16, or this process may not use it.\n");
    return 0;
  }
  fmt::print("M x N x K\n");
  for (const std::int64_t m : {1, 8, 16, 32, 64})
    for (const auto& [n, k] : {std::pair{4096, 4096}, std::pair{11008, 4096}, std::pair{4096, 11008}})
      measure({m, n, k}, rounds);
}
