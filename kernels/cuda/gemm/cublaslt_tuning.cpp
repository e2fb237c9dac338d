// A contest between launches of one GEMM, or of one step.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/cublaslt_tuning.h"

#include "kernels/cuda/gemm/gemm_timer.h"
#include "kernels/cuda/support/check.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

using MakeTimer = std::function<std::unique_ptr<CandidateTimer>()>;

/// workspaceBytes: of each candidate.
AlgorithmChoice holdContest(const std::vector<std::uint64_t>& workspaceBytes, const MakeTimer& makeTimer) try {
  return chooseByTiming(workspaceBytes, *makeTimer());
} catch (const std::exception&) {
  return {};
}

/// candidate: what it is, for messages.
AlgorithmChoice contest(const std::vector<std::uint64_t>& workspaceBytes, const MakeTimer& makeTimer, Stream stream,
                        const char* candidate) {
  const AlgorithmChoice choice = holdContest(workspaceBytes, makeTimer);
  cudaGetLastError();  // an error of a refused candidate must not be blamed on the next launch
  if (cudaStreamSynchronize(stream) == cudaSuccess) return choice;
  throw DeviceFault(fmt::format(
      "{} failed while it was timed, so this process cannot use the GPU any more. Start again with FUSELINE_TUNE=off, "
      "which times nothing.",
      candidate));
}

AlgorithmChoice contest(const GemmProblem& problem, const std::vector<std::uint64_t>& workspaceBytes, GemmLaunch launch,
                        Stream stream) {
  const auto makeTimer = [&] {
    return makeGemmTimer(problem, *std::ranges::max_element(workspaceBytes), std::move(launch), stream);
  };
  return contest(workspaceBytes, makeTimer, stream, "An algorithm of cuBLASLt");
}

}  // namespace

AlgorithmChoice timeCandidates(CublasLtProduct& product, std::span<const CublasLtCandidate> candidates) {
  const Stream stream = product.session().stream();
  std::vector<std::uint64_t> workspaceBytes;
  for (const CublasLtCandidate& candidate : candidates) workspaceBytes.push_back(product.workspaceBytes(candidate));
  const auto launch = [&](std::size_t candidate, const GemmPointers& pointers, std::byte* workspace) {
    product.multiply(candidates[candidate], pointers, workspace, stream);
  };
  return contest(product.problem(), workspaceBytes, launch, stream);
}

AlgorithmChoice timeWays(const GemmProblem& problem, std::span<Gemm* const> ways, Stream stream) {
  std::vector<std::uint64_t> workspaceBytes;
  for (const Gemm* const way : ways) workspaceBytes.push_back(way->workspaceBytes());
  const auto launch = [&](std::size_t way, const GemmPointers& pointers, std::byte* workspace) {
    ways[way]->multiply(pointers, workspace, stream);
  };
  return contest(problem, workspaceBytes, launch, stream);
}

AlgorithmChoice timeStep(const TimedStep& step, Stream stream) {
  return contest(
      step.workspaceBytes, [&] { return makeStepTimer(step, stream); }, stream, "A kernel");
}

}  // namespace fuseline::cuda
