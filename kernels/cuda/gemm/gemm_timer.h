// Times launches of a GEMM, or of a step, by the GPU's clock, on sample operands.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/gemm/algorithm_choice.h"
#include "kernels/cuda/gemm/gemm.h"
#include "kernels/cuda/stream/stream.h"

#include <functional>
#include <memory>

namespace fuseline::cuda {

/// Launches a candidate of a GEMM.
using GemmLaunch = std::function<void(std::size_t candidate, const GemmPointers& pointers, std::byte* workspace)>;

/// Runs on the stream, in its own memory; waits for the GPU. workspaceBytes: the largest workspace of a candidate.
/// Throws DeviceFault when the GPU has no room for the operands, or fails.
std::unique_ptr<CandidateTimer> makeGemmTimer(const GemmProblem& problem, std::size_t workspaceBytes, GemmLaunch launch,
                                              Stream stream);
std::unique_ptr<CandidateTimer> makeStepTimer(const TimedStep& step, Stream stream);

}  // namespace fuseline::cuda
