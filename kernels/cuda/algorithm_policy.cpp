// Reads FUSELINE_TUNE.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/algorithm_policy.h"

#include <string_view>

namespace fuseline::cuda {

AlgorithmPolicy algorithmPolicy(const Environment& environment) {
  const char* const wish = environment("FUSELINE_TUNE");
  const std::filesystem::path cache = userCacheFolder(environment);
  return {.isTimed = !wish || std::string_view(wish) != "off", .folder = cache.empty() ? cache : cache / "algorithms"};
}

std::string describe(const AlgorithmPolicy& policy) {
  if (!policy.isTimed) return "the library's own first choice (FUSELINE_TUNE=off)";
  if (policy.folder.empty()) return "algorithms timed in every run, for want of a folder to keep them in";
  return "algorithms timed and kept in " + policy.folder.string();
}

}  // namespace fuseline::cuda
