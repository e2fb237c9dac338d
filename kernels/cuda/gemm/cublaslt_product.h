// One GEMM in the terms of cuBLASLt: its descriptors, the algorithms for it, and the call.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"
#include "kernels/cuda/gemm/cublaslt_operation.h"
#include "kernels/cuda/gemm/gemm.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace fuseline::cuda {

/// NVIDIA recommends 32 MiB from Hopper on (cuBLAS, "cublasSetWorkspace").
inline constexpr std::uint64_t kMaxWorkspaceBytes = std::uint64_t{32} << 20;

/// An epilogue may write slightly beyond its algorithm's workspace (nvmath-python allocates this much).
inline constexpr std::size_t kEpilogueBytes = 16;

/// An algorithm and the workspace that it needs.
using CublasLtCandidate = cublasLtMatmulHeuristicResult_t;

class CublasLtProduct {
 public:
  /// Throws DeviceFault. session: must outlive this object.
  CublasLtProduct(const CublasLtSession& session, const GemmProblem& problem);
  /// The same with other terms, to query the library about them.
  CublasLtProduct(const CublasLtSession& session, const GemmProblem& problem, const CublasLtTerms& terms);

  const GemmProblem& problem() const { return m_problem; }
  const CublasLtTerms& terms() const { return m_terms; }
  const CublasLtSession& session() const { return m_session; }

  /// The library's candidates, the fastest by its own estimate first. Throws DeviceFault.
  std::vector<CublasLtCandidate> candidates(int maxCandidates) const;
  /// Whether it offers any; no has its words.
  Verdict isOffered() const;
  /// An algorithm from elsewhere; nothing when the library refuses it.
  std::optional<CublasLtCandidate> accept(const cublasLtMatmulAlgo_t& algorithm) const;
  /// Total size of the memory that multiply() may write to.
  std::size_t workspaceBytes(const CublasLtCandidate& candidate) const;
  /// Asynchronous. Throws DeviceFault.
  void multiply(const CublasLtCandidate& candidate, const GemmPointers& pointers, std::byte* workspace, Stream stream);
  /// By the first of several candidates that the library does not refuse after all; returns how many it refused.
  std::size_t multiplyByFirst(std::span<const CublasLtCandidate> candidates, const GemmPointers& pointers,
                              std::byte* workspace, Stream stream);

 private:
  cublasStatus_t search(std::span<CublasLtCandidate> candidates, int& found) const;
  OwnedLayout makeLayout(const ColumnMajor& matrix, cudaDataType_t type) const;
  void check(cublasStatus_t status, const char* action) const;
  void setPointers(const GemmPointers& pointers);
  cublasStatus_t launch(const CublasLtCandidate& candidate, const GemmPointers& pointers, std::byte* workspace,
                        Stream stream) const;

  const CublasLtSession& m_session;
  GemmProblem m_problem;
  CublasLtTerms m_terms;
  CublasLtOperation m_operation;
  OwnedLayout m_a, m_b, m_c, m_d;
};

/// The GEMM, if the library accepts its description; else the library's message. session: must outlive it.
Result<std::unique_ptr<CublasLtProduct>> describeProduct(const CublasLtSession& session, const GemmProblem& problem,
                                                         const CublasLtTerms& terms);

}  // namespace fuseline::cuda
