// Checks kept choices, and times the candidates of the others.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/cublaslt_choice.h"

#include "kernels/cuda/gemm/cublaslt_tuning.h"
#include "kernels/cuda/gemm/way_choice.h"
#include "kernels/cuda/machine/nvml.h"

#include <bit>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

/// Beyond these the library itself expects little.
constexpr int kMaxCandidates = 16;

using AlgorithmBytes = decltype(KeptAlgorithm::algorithm);

KeptAlgorithm keptAs(const CublasLtCandidate& candidate, const AlgorithmChoice& choice) {
  return {.algorithm = std::bit_cast<AlgorithmBytes>(candidate.algo),
          .candidate = static_cast<std::int64_t>(choice.candidate),
          .workspaceBytes = candidate.workspaceSize,
          .medianNs = choice.medianNs,
          .firstMedianNs = choice.firstMedianNs,
          .numCandidates = choice.numTimed};
}

/// The library may still refuse an offered or kept algorithm at the launch; the next one is tried then.
std::vector<CublasLtCandidate> inWorkspaceOfFirst(std::vector<CublasLtCandidate> candidates) {
  if (candidates.empty()) return candidates;
  const std::size_t most = candidates.front().workspaceSize;
  std::erase_if(candidates, [&](const CublasLtCandidate& each) { return each.workspaceSize > most; });
  return candidates;
}

}  // namespace

std::vector<CublasLtCandidate> CublasLtChooser::choose(CublasLtProduct& product) {
  const std::lock_guard lock(m_mutex);
  const std::string key = problemKey(product.problem(), kMaxWorkspaceBytes);
  const std::optional<CublasLtCandidate> kept = recall(product, key);
  std::vector<CublasLtCandidate> candidates = product.candidates(kMaxCandidates);
  if (kept) {
    candidates.insert(candidates.begin(), *kept);
    return inWorkspaceOfFirst(std::move(candidates));
  }
  if (candidates.empty() || !m_isTimed || !product.problem().hasTimeToTune) return inWorkspaceOfFirst(candidates);
  const AlgorithmChoice choice = timeCandidates(product, candidates);
  if (choice.haveAllFailed) return {};
  if (choice.medianNs == 0.0) return inWorkspaceOfFirst(candidates);
  m_cache.keep(key, keptAs(candidates[choice.candidate], choice));
  return {candidates[choice.candidate]};
}

std::size_t CublasLtChooser::chooseWay(const GemmProblem& problem, std::span<Gemm* const> ways, Stream stream) {
  const std::lock_guard lock(m_mutex);
  if (!m_isTimed || !problem.hasTimeToTune || problem.m * problem.n == 0) return 0;
  const std::string key = problemKey(problem, kMaxWorkspaceBytes) + ", whole or with passes";
  return keptOr(m_cache, key, ways.size(), [&] { return timeWays(problem, ways, stream); });
}

std::size_t CublasLtChooser::chooseWay(const TimedStep& step, Stream stream) {
  const std::lock_guard lock(m_mutex);
  if (!m_isTimed) return 0;
  return keptOr(m_cache, step.key, step.workspaceBytes.size(), [&] { return timeStep(step, stream); });
}

std::optional<CublasLtCandidate> CublasLtChooser::recall(const CublasLtProduct& product, const std::string& key) {
  const std::optional<KeptAlgorithm> kept = m_cache.find(key);
  if (!kept) return std::nullopt;
  auto accepted = product.accept(std::bit_cast<cublasLtMatmulAlgo_t>(kept->algorithm));
  if (!accepted) m_cache.drop(key);
  return accepted;
}

AlgorithmOrigin originOf(const std::string& deviceName, const CublasLt& library) {
  int cuda = 0;
  if (cudaDriverGetVersion(&cuda) != cudaSuccess) cuda = 0;
  return {
      .device = deviceName, .driver = driverRelease(loadNvml(), cuda), .library = fmt::format("{}", library.version())};
}

}  // namespace fuseline::cuda
