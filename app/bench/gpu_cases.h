// Cases of suite "gpu" of fuseline-bench: the examples at sizes of real models, under each recipe.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/profile/run_spec.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fuseline::cli {

/// Size of a layer.
struct GpuSize {
  std::string name;
  std::int64_t M = 0;  // rows
  std::int64_t H = 0;  // hidden size
  std::int64_t F = 0;  // inner size
  std::int64_t G = 0;  // groups; 0: the pipeline has none
};

struct GpuCase {
  std::string pipeline;
  GpuSize size;
  std::string recipe;
  ExecutionMode pass = ExecutionMode::Training;
  bool isDefault = false;  // measured unless others are asked for

  /// "llama-mlp_8B_DelayedScaling_train"
  std::string name() const;
};

std::vector<GpuCase> gpuCases();
/// Every pipeline, recipe and pass at a size that also a CPU runs in a moment: for a look at the suite itself.
std::vector<GpuCase> quickGpuCases();

}  // namespace fuseline::cli
