// The fastest of many candidates, and how far others are from it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/gemm/algorithm_choice.h"

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

namespace fuseline::cuda {

struct Winner {
  std::size_t candidate = 0;
  std::size_t numTimed = 0;
};

/// Times each candidate by itself until the budget is spent, in the order of their numbers, and the fastest of these
/// again, interleaved. Candidates that fail are excluded. numTimed is 0 if all failed.
Winner fastestOf(std::size_t numCandidates, CandidateTimer& timer, std::chrono::nanoseconds budget);

/// Times the candidates in rounds of random order: a list of nanoseconds for each, one a round. A candidate may be
/// there twice. A round in which one fails is left out.
std::vector<std::vector<double>> timeInTurn(std::span<const std::size_t> candidates, CandidateTimer& timer,
                                            int numRounds);

}  // namespace fuseline::cuda
