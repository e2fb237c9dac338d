// Times the algorithms of one GEMM on the GPU, or several implementations of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/gemm/algorithm_choice.h"
#include "kernels/cuda/gemm/cublaslt_product.h"

#include <span>

namespace fuseline::cuda {

/// Runs on the session's stream, in memory that is freed at the end; waits for the GPU. Returns the first candidate,
/// untimed, if the GPU has no room for the operands. Throws DeviceFault if it faults, after which the process cannot
/// use the GPU.
AlgorithmChoice timeCandidates(CublasLtProduct& product, std::span<const CublasLtCandidate> candidates);
/// The same for GEMMs including their passes. stream: theirs.
AlgorithmChoice timeWays(const GemmProblem& problem, std::span<Gemm* const> ways, Stream stream);
/// The same for the implementations of a step.
AlgorithmChoice timeStep(const TimedStep& step, Stream stream);

}  // namespace fuseline::cuda
