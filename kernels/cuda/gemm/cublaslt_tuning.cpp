// A contest between launches of one GEMM.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/cublaslt_tuning.h"

#include "kernels/cuda/gemm/gemm_timer.h"
#include "kernels/cuda/support/check.h"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

namespace fuseline::cuda {

namespace {

/// workspaceBytes: of each candidate.
AlgorithmChoice holdContest(const GemmProblem& problem, const std::vector<std::uint64_t>& workspaceBytes,
                            GemmLaunch launch, Stream stream) try {
  const auto timer = makeGemmTimer(problem, *std::ranges::max_element(workspaceBytes), std::move(launch), stream);
  return chooseByTiming(workspaceBytes, *timer);
} catch (const std::exception&) {
  return {};
}

AlgorithmChoice contest(const GemmProblem& problem, const std::vector<std::uint64_t>& workspaceBytes, GemmLaunch launch,
                        Stream stream) {
  const AlgorithmChoice choice = holdContest(problem, workspaceBytes, std::move(launch), stream);
  cudaGetLastError();  // an error of a refused candidate must not be blamed on the next launch
  if (cudaStreamSynchronize(stream) == cudaSuccess) return choice;
  throw DeviceFault(
      "An algorithm of cuBLASLt failed while it was timed, so this process cannot use the GPU any more. Start again "
      "with FUSELINE_TUNE=off, which uses cuBLASLt's top heuristic.");
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

}  // namespace fuseline::cuda
