// A choice between a few implementations, timed once and kept.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/gemm/algorithm_cache.h"
#include "kernels/cuda/gemm/algorithm_choice.h"

#include <cstddef>
#include <functional>
#include <string>

namespace fuseline::cuda {

/// The kept choice for the key, or else the choice of the contest, which is kept if it timed anything. Below numWays.
std::size_t keptOr(AlgorithmCache& cache, const std::string& key, std::size_t numWays,
                   const std::function<AlgorithmChoice()>& contest);

}  // namespace fuseline::cuda
