// Looks before it times.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/way_choice.h"

namespace fuseline::cuda {

std::size_t keptOr(AlgorithmCache& cache, const std::string& key, std::size_t numWays,
                   const std::function<AlgorithmChoice()>& contest) {
  const std::optional<KeptAlgorithm> kept = cache.find(key);
  if (kept && kept->candidate >= 0 && kept->candidate < static_cast<std::int64_t>(numWays))
    return static_cast<std::size_t>(kept->candidate);
  const AlgorithmChoice choice = contest();
  if (choice.medianNs > 0.0)
    cache.keep(key, {.candidate = static_cast<std::int64_t>(choice.candidate),
                     .medianNs = choice.medianNs,
                     .firstMedianNs = choice.firstMedianNs,
                     .numCandidates = choice.numTimed});
  return choice.candidate;
}

}  // namespace fuseline::cuda
