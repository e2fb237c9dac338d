// Descriptors, attributes, and the calls that read them.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/cublaslt_product.h"

#include "kernels/cuda/gemm/gemm_epilogue.h"
#include "kernels/cuda/stream/launch_count.h"
#include "kernels/cuda/support/check.h"

#include <array>

namespace fuseline::cuda {

CublasLtProduct::CublasLtProduct(const CublasLtSession& session, const GemmProblem& problem)
    : CublasLtProduct(session, problem, termsOf(problem)) {}

CublasLtProduct::CublasLtProduct(const CublasLtSession& session, const GemmProblem& problem, const CublasLtTerms& terms)
    : m_session(session),
      m_problem(problem),
      m_terms(terms),
      m_operation(session, terms),
      m_a(makeLayout(terms.layout.a, terms.aType)),
      m_b(makeLayout(terms.layout.b, terms.bType)),
      m_c(makeLayout(terms.layout.d, terms.cType)),
      m_d(makeLayout(terms.layout.d, terms.dType)) {}

std::vector<CublasLtCandidate> CublasLtProduct::candidates(int maxCandidates) const {
  std::vector<CublasLtCandidate> candidates(static_cast<std::size_t>(maxCandidates));
  int found = 0;
  const cublasStatus_t status = search(candidates, found);
  if (status == CUBLAS_STATUS_ALLOC_FAILED) check(status, "look for an algorithm");
  if (status != CUBLAS_STATUS_SUCCESS) return {};
  candidates.resize(static_cast<std::size_t>(found));
  std::erase_if(candidates, [](const CublasLtCandidate& each) { return each.state != CUBLAS_STATUS_SUCCESS; });
  return candidates;
}

Verdict CublasLtProduct::isOffered() const {
  std::array<CublasLtCandidate, 1> candidate{};
  int found = 0;
  cublasStatus_t status = search(candidate, found);
  if (status == CUBLAS_STATUS_SUCCESS && found > 0) status = candidate.front().state;
  if (status != CUBLAS_STATUS_SUCCESS) return Verdict::no(m_session.library().statusString(status));
  return found > 0 ? Verdict::yes() : Verdict::no("no algorithm");
}

std::optional<CublasLtCandidate> CublasLtProduct::accept(const cublasLtMatmulAlgo_t& algorithm) const {
  CublasLtCandidate candidate{};
  const cublasStatus_t status = m_session.library().checkAlgorithm(
      m_session.handle(), m_operation.get(), m_a.get(), m_b.get(), m_c.get(), m_d.get(), &algorithm, &candidate);
  candidate.algo = algorithm;
  const bool isAccepted = status == CUBLAS_STATUS_SUCCESS && candidate.state == CUBLAS_STATUS_SUCCESS &&
                          candidate.workspaceSize <= kMaxWorkspaceBytes;
  return isAccepted ? std::optional(candidate) : std::nullopt;
}

std::size_t CublasLtProduct::workspaceBytes(const CublasLtCandidate& candidate) const {
  return candidate.workspaceSize + (hasEpilogue(m_problem) ? kEpilogueBytes : 0);
}

void CublasLtProduct::multiply(const CublasLtCandidate& candidate, const GemmPointers& pointers, std::byte* workspace,
                               Stream stream) {
  multiplyByFirst(std::span(&candidate, 1), pointers, workspace, stream);
}

std::size_t CublasLtProduct::multiplyByFirst(std::span<const CublasLtCandidate> candidates,
                                             const GemmPointers& pointers, std::byte* workspace, Stream stream) {
  setPointers(pointers);
  cublasStatus_t status = CUBLAS_STATUS_NOT_SUPPORTED;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    status = launch(candidates[i], pointers, workspace, stream);
    if (status == CUBLAS_STATUS_SUCCESS) {
      ++numLaunched;
      return i;
    }
    if (status == CUBLAS_STATUS_EXECUTION_FAILED) break;  // a fault of the GPU, not of the library
  }
  check(status, "multiply");
  return 0;
}

cublasStatus_t CublasLtProduct::launch(const CublasLtCandidate& candidate, const GemmPointers& pointers,
                                       std::byte* workspace, Stream stream) const {
  const float onHost[2] = {m_problem.alpha, m_problem.hasAddend ? 1.0F : 0.0F};
  const auto* const onDevice = reinterpret_cast<const float*>(pointers.factors);
  const float* const alphaAndBeta = isScaledOnDevice(m_problem) ? onDevice : onHost;
  const std::byte* const unread = m_problem.cFormat ? nullptr : pointers.c;  // C has not the type of such a D
  const std::byte* const addend = m_problem.hasAddend ? pointers.addend : unread;
  return m_session.library().matmul(m_session.handle(), m_operation.get(), alphaAndBeta, pointers.b, m_a.get(),
                                    pointers.a, m_b.get(), alphaAndBeta + 1, addend, m_c.get(), pointers.c, m_d.get(),
                                    &candidate.algo, workspace, candidate.workspaceSize, stream);
}

cublasStatus_t CublasLtProduct::search(std::span<CublasLtCandidate> candidates, int& found) const {
  return m_session.library().heuristic(m_session.handle(), m_operation.get(), m_a.get(), m_b.get(), m_c.get(),
                                       m_d.get(), makePreference(m_session.library(), m_terms).get(),
                                       static_cast<int>(candidates.size()), candidates.data(), &found);
}

OwnedLayout CublasLtProduct::makeLayout(const ColumnMajor& matrix, cudaDataType_t type) const {
  cublasLtMatrixLayout_t layout = nullptr;
  check(m_session.library().createLayout(&layout, type, static_cast<std::uint64_t>(matrix.rows),
                                         static_cast<std::uint64_t>(matrix.cols), matrix.leadingDimension),
        "describe a matrix");
  OwnedLayout owned(layout, m_session.library().destroyLayout);
  if (matrix.count == 1) return owned;
  const auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, auto value) {
    check(m_session.library().setLayout(layout, attribute, &value, sizeof(value)), "describe a batch of matrices");
  };
  set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(matrix.count));
  set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, matrix.stride);
  return owned;
}

void CublasLtProduct::check(cublasStatus_t status, const char* action) const {
  checkBlas(m_session.library(), status, action);
}

void CublasLtProduct::setPointers(const GemmPointers& pointers) {
  if (m_problem.hasBias) m_operation.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, pointers.bias);
  if (m_problem.biasGradType) m_operation.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, pointers.biasGrad);
  if (m_problem.hasPreActivation) m_operation.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, pointers.preActivation);
  if (m_problem.hasGeluGrad) m_operation.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, pointers.geluInput);
  if (m_problem.cFormat) {
    m_operation.set(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, pointers.cScale);
    m_operation.set(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, pointers.cAmax);
  }
  if (!m_problem.aCodes) return;
  m_operation.set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, pointers.bScales);
  m_operation.set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, pointers.aScales);
}

Result<std::unique_ptr<CublasLtProduct>> describeProduct(const CublasLtSession& session, const GemmProblem& problem,
                                                         const CublasLtTerms& terms) {
  try {
    return std::make_unique<CublasLtProduct>(session, problem, terms);
  } catch (const DeviceFault& refusal) {
    return Error{refusal.what(), ErrorKind::RunFailed};
  }
}

}  // namespace fuseline::cuda
