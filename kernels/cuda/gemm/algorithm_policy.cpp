// Reads FUSELINE_TUNE.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/algorithm_policy.h"

#include <string_view>

namespace fuseline::cuda {

AlgorithmPolicy algorithmPolicy(const Environment& environment) {
  const auto is = [&](const char* name, std::string_view value) {
    const char* const wish = environment(name);
    return wish && wish == value;
  };
  const std::filesystem::path cache = userCacheFolder(environment);
  return {.isTimed = !is("FUSELINE_TUNE", "off"),
          .folder = cache.empty() ? cache : cache / "algorithms",
          .usesTf32 = is("FUSELINE_TF32", "on")};
}

namespace {

/// Without the folder's name: run files are passed on, and it names the user.
std::string algorithmsText(const AlgorithmPolicy& policy) {
  if (!policy.isTimed) return "cuBLASLt's top heuristic (FUSELINE_TUNE=off)";
  return policy.folder.empty() ? "algorithms timed in every run, because there is no cache folder"
                               : "algorithms timed, and cached for the next run";
}

}  // namespace

std::string describe(const AlgorithmPolicy& policy) {
  return algorithmsText(policy) + (policy.usesTf32 ? "; float32 in TF32 (FUSELINE_TF32=on)" : "; float32 not rounded");
}

}  // namespace fuseline::cuda
