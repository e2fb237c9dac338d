// Times the CPU kernels against the limits of the machine, measured in the same run.
//
// Each benchmark reports the fastest of its iterations, `best_us`, and with it `share`: bytes per second over the copy
// bandwidth, or floating-point operations per second over the peak. A share of 1 is the limit; sizes that fit the
// cache may exceed the copy bandwidth of memory.
// SPDX-License-Identifier: Apache-2.0
#include "core/fusion/fuser.h"
#include "core/plan/plan.h"
#include "core/runtime/bindings.h"
#include "core/runtime/executor.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/machine/peaks.h"
#include "tests/support/pipelines.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include <benchmark/benchmark.h>

namespace fuseline {
namespace {

using namespace fuseline::testing;

const DevicePeaks& peaks() {
  static const DevicePeaks measured = cpu::measurePeaks();
  return measured;
}

template <class T>
T valueOf(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

enum class Fusion { Off, On };
enum class Limit { Memory, Arithmetic };

/// A pipeline to time.
struct Case {
  std::string name;
  DType dtype = DType::BF16;
  Shape shape;
  std::vector<Link> links;
  ExecutionMode pass = ExecutionMode::Inference;
  Fusion fusion = Fusion::On;
  Limit limit = Limit::Memory;
};

std::int64_t bytesOf(const Plan& plan) {
  std::int64_t bytes = 0;
  for (const Step& step : plan.steps) bytes += step.bytesRead + step.bytesWritten;
  return bytes;
}

std::int64_t flopsOf(const Plan& plan) {
  std::int64_t flops = 0;
  for (const Step& step : plan.steps) flops += step.flops;
  return flops;
}

double peakOf(const Case& test) {
  if (test.limit == Limit::Memory) return peaks().copyGBps;
  return test.dtype == DType::BF16 && peaks().bf16Gflops > 0 ? peaks().bf16Gflops : peaks().fmaF32Gflops;
}

double secondsOf(Executor& executor) {
  const auto start = std::chrono::steady_clock::now();
  valueOf(executor.run());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void run(benchmark::State& state, const Case& test) {
  const auto backend = cpu::makeCpuBackend();
  const Graph graph = chain(test.dtype, test.shape, test.links, {.pass = test.pass});
  const FusionReport report =
      test.fusion == Fusion::On ? valueOf(fuse(graph, {.capabilities = capabilitiesOf(backend)})) : unfused(graph);
  const Plan plan = makePlan(graph, report);
  const auto executor = valueOf(Executor::create(backend, graph, plan, valueOf(makeBindings(graph, 1))));
  double bestSeconds = 1e9;
  for (auto _ : state) bestSeconds = std::min(bestSeconds, secondsOf(*executor));
  const double work = static_cast<double>(test.limit == Limit::Memory ? bytesOf(plan) : flopsOf(plan));
  state.counters["best_us"] = bestSeconds * 1e6;
  state.counters["share"] = work / bestSeconds / (peakOf(test) * 1e9);
}

void add(const Case& test) {
  const std::string dtype(dtypeName(test.dtype));
  const std::string name = test.name + "/" + dtype + "/" + toString(test.shape) +
                           (test.fusion == Fusion::On ? "/fused" : "/unfused") +
                           (test.pass == ExecutionMode::Training ? "/training" : "");
  benchmark::RegisterBenchmark(name.c_str(), [test](benchmark::State& state) { run(state, test); })
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond)
      ->MinTime(0.1);
}

void addBothWays(Case test) {
  for (const Fusion fusion : {Fusion::Off, Fusion::On}) {
    test.fusion = fusion;
    add(test);
  }
}

void addAll() {
  for (const DType dtype : {DType::BF16, DType::F32}) {
    for (const Shape& shape : {Shape{256, 4096}, Shape{4096, 4096}}) {
      for (const char* op : {"RMSNorm", "LayerNorm", "GELU", "SwiGLU", "Bias"})
        for (const ExecutionMode pass : {ExecutionMode::Inference, ExecutionMode::Training})
          add({.name = op, .dtype = dtype, .shape = shape, .links = {link(op)}, .pass = pass});
      addBothWays(
          {.name = "add_norm", .dtype = dtype, .shape = shape, .links = {link("AddExtraInput"), link("RMSNorm")}});
      addBothWays({.name = "chain",
                   .dtype = dtype,
                   .shape = shape,
                   .links = {link("ConstantScale"), link("Bias"), link("GELU"), link("AddExtraInput"), link("Bias"),
                             link("ConstantScale")}});
    }
    for (const std::int64_t tokens : {256, 1024})
      for (const ExecutionMode pass : {ExecutionMode::Inference, ExecutionMode::Training}) {
        add({.name = "linear_4096",
             .dtype = dtype,
             .shape = {tokens, 1024},
             .links = {linear(4096)},
             .pass = pass,
             .limit = Limit::Arithmetic});
        addBothWays({.name = "linear_bias_gelu",
                     .dtype = dtype,
                     .shape = {tokens, 1024},
                     .links = {linear(4096), link("Bias"), link("GELU")},
                     .pass = pass,
                     .limit = Limit::Arithmetic});
        addBothWays({.name = "swiglu_linear",
                     .dtype = dtype,
                     .shape = {tokens, 8192},
                     .links = {link("SwiGLU"), linear(1024)},
                     .pass = pass,
                     .limit = Limit::Arithmetic});
      }
  }
}

}  // namespace
}  // namespace fuseline

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const auto& peaks = fuseline::peaks();
  benchmark::AddCustomContext("copy_GBps", std::to_string(peaks.copyGBps));
  benchmark::AddCustomContext("fma_f32_GFLOPs", std::to_string(peaks.fmaF32Gflops));
  benchmark::AddCustomContext("bf16_GFLOPs", std::to_string(peaks.bf16Gflops));
  fuseline::addAll();
  benchmark::RunSpecifiedBenchmarks();
}
