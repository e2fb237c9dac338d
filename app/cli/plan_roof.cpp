// A sum over steps; nothing overlaps.
// SPDX-License-Identifier: Apache-2.0
#include "app/cli/plan_roof.h"

#include <algorithm>

namespace fuseline::cli {

namespace {

using Arithmetic = StepWork::Arithmetic;

Arithmetic arithmeticOf(const Graph& graph, const Step& step) {
  const auto isProduct = [&](NodeId id) { return graph.node(id).operation->isQuantizable; };
  const auto product = std::ranges::find_if(step.nodes, isProduct);
  if (product == step.nodes.end()) return Arithmetic::F32;
  return graph.node(*product).quantizers.any() ? Arithmetic::Fp8Product : Arithmetic::Bf16Product;
}

/// A device without an arithmetic of its own for products computes them in the next wider one.
double peakOf(Arithmetic arithmetic, const DeviceRoofs& roofs) {
  if (arithmetic == Arithmetic::Fp8Product && roofs.fp8Gflops > 0.0) return roofs.fp8Gflops;
  if (arithmetic != Arithmetic::F32 && roofs.bf16Gflops > 0.0) return roofs.bf16Gflops;
  return roofs.fmaF32Gflops;
}

}  // namespace

std::vector<StepWork> workOf(const Graph& graph, const Plan& plan) {
  std::vector<StepWork> work;
  for (const Step& step : plan.steps)
    if (step.isWork())
      work.push_back({.arithmetic = arithmeticOf(graph, step),
                      .flops = static_cast<double>(step.flops),
                      .bytes = static_cast<double>(step.bytesRead + step.bytesWritten)});
  return work;
}

double leastTimeNs(const std::vector<StepWork>& work, const DeviceRoofs& roofs) {
  if (roofs.copyGBps <= 0.0) return 0.0;
  double timeNs = 0.0;
  for (const StepWork& step : work) {
    const double peak = peakOf(step.arithmetic, roofs);
    timeNs += std::max(peak > 0.0 ? step.flops / peak : 0.0, step.bytes / roofs.copyGBps);
  }
  return timeNs;
}

}  // namespace fuseline::cli
