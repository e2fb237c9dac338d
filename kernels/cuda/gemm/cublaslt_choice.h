// Algorithm of a GEMM: the one that is kept for it, the fastest of those offered, or the first. And whether the GEMM
// applies its epilogue itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/gemm/algorithm_cache.h"
#include "kernels/cuda/gemm/algorithm_policy.h"
#include "kernels/cuda/gemm/cublaslt_product.h"

#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fuseline::cuda {

/// Safe to call from several threads: one times at a time.
class CublasLtChooser {
 public:
  CublasLtChooser(const AlgorithmPolicy& policy, AlgorithmOrigin origin)
      : m_isTimed(policy.isTimed), m_cache(policy.isTimed ? policy.folder : "", std::move(origin)) {}

  /// In the order in which to try them, none with more workspace than the first. Empty: the library has no algorithm
  /// that runs. Throws DeviceFault.
  std::vector<CublasLtCandidate> choose(CublasLtProduct& product);
  /// The implementation that solves the problem: the one that is kept, the fastest, or the first.
  std::size_t chooseWay(const GemmProblem& problem, std::span<Gemm* const> ways, Stream stream);
  std::size_t chooseWay(const TimedStep& step, Stream stream);

 private:
  std::optional<CublasLtCandidate> recall(const CublasLtProduct& product, const std::string& key);

  std::mutex m_mutex;
  bool m_isTimed;
  AlgorithmCache m_cache;
};

/// The release of the driver and the version of the library, in words of the cache. library: loaded.
AlgorithmOrigin originOf(const std::string& deviceName, const CublasLt& library);

}  // namespace fuseline::cuda
