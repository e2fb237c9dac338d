// Descriptors, attributes, and the calls that read them.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cublaslt_product.h"

#include "kernels/cuda/check.h"
#include "kernels/cuda/gemm_epilogue.h"

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

cudaDataType_t typeOf(DType dtype) {
  if (dtype == DType::F16) return CUDA_R_16F;
  return dtype == DType::BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

cudaDataType_t typeOf(const std::optional<FactorCodes>& codes, DType dtype) {
  if (!codes) return typeOf(dtype);
  return codes->format == ElementFormat::E5M2 ? CUDA_R_8F_E5M2 : CUDA_R_8F_E4M3;
}

cublasLtMatmulMatrixScale_t scaleModeOf(Scaling scaling) {
  switch (scaling) {
    case Scaling::Block1x128: return CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
    case Scaling::Block128x128: return CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
    case Scaling::Mx1x32:
    case Scaling::Mx32x32: return CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
    case Scaling::Nv1x16:
    case Scaling::Nv16x16: return CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3;
    case Scaling::PerTensor: break;
  }
  return CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
}

/// How partial sums of a split contraction may be added: in float32, never in a narrower dtype of the result.
std::uint32_t reductionsOf(DType cType) {
  return cType == DType::F32 ? CUBLASLT_REDUCTION_SCHEME_MASK : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
}

/// Of the bias, or of its gradient; nothing: the epilogue has no vector.
std::optional<DType> biasTypeOf(const GemmProblem& problem) {
  return problem.hasBias ? problem.cType : problem.biasGradType;
}

/// The library's B is our a, which a bias gradient sums over k.
cublasLtEpilogue_t epilogueOf(const GemmProblem& problem) {
  if (problem.biasGradType) return CUBLASLT_EPILOGUE_BGRADB;
  const bool hasBias = problem.hasBias;
  switch (problem.activation) {
    case Activation::None: break;
    case Activation::Relu: return hasBias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case Activation::Gelu:
      if (problem.hasPreActivation) return hasBias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
      return hasBias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  }
  return hasBias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

}  // namespace

void checkBlas(const CublasLt& library, cublasStatus_t status, const char* action) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceFault(fmt::format("cuBLASLt could not {}: {}.", action, library.statusString(status)));
}

/// The factors are swapped: A is b.
CublasLtProduct::CublasLtProduct(const CublasLtSession& session, const GemmProblem& problem)
    : CublasLtProduct(session, problem, layoutOf(problem)) {}

CublasLtProduct::CublasLtProduct(const CublasLtSession& session, const GemmProblem& problem, const CublasLayout& layout)
    : m_session(session),
      m_problem(problem),
      m_operation(makeOperation(layout)),
      m_a(makeLayout(layout.a, typeOf(problem.bCodes, problem.factorType))),
      m_b(makeLayout(layout.b, typeOf(problem.aCodes, problem.factorType))),
      m_d(makeLayout(layout.d, typeOf(problem.cType))) {}

std::vector<CublasLtCandidate> CublasLtProduct::candidates(int maxCandidates) const {
  const Preference preference = makePreference();
  std::vector<CublasLtCandidate> candidates(static_cast<std::size_t>(maxCandidates));
  int found = 0;
  const cublasStatus_t status =
      m_session.library().heuristic(m_session.handle(), m_operation.get(), m_a.get(), m_b.get(), m_d.get(), m_d.get(),
                                    preference.get(), maxCandidates, candidates.data(), &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return {};
  check(status, "look for an algorithm");
  candidates.resize(static_cast<std::size_t>(found));
  std::erase_if(candidates, [](const CublasLtCandidate& each) { return each.state != CUBLAS_STATUS_SUCCESS; });
  return candidates;
}

std::optional<CublasLtCandidate> CublasLtProduct::accept(const cublasLtMatmulAlgo_t& algorithm) const {
  CublasLtCandidate candidate{};
  const cublasStatus_t status = m_session.library().checkAlgorithm(
      m_session.handle(), m_operation.get(), m_a.get(), m_b.get(), m_d.get(), m_d.get(), &algorithm, &candidate);
  candidate.algo = algorithm;
  const bool isAccepted = status == CUBLAS_STATUS_SUCCESS && candidate.state == CUBLAS_STATUS_SUCCESS &&
                          candidate.workspaceSize <= kMaxWorkspaceBytes;
  return isAccepted ? std::optional(candidate) : std::nullopt;
}

std::size_t CublasLtProduct::workspaceBytes(const CublasLtCandidate& candidate) const {
  return candidate.workspaceSize + (hasEpilogue(m_problem) ? kEpilogueBytes : 0);
}

void CublasLtProduct::multiply(const CublasLtCandidate& candidate, const GemmPointers& pointers, std::byte* workspace) {
  setPointers(pointers);
  const float beta = m_problem.hasAddend ? 1.0F : 0.0F;
  const std::byte* const addend = m_problem.hasAddend ? pointers.addend : pointers.c;
  check(m_session.library().matmul(m_session.handle(), m_operation.get(), &m_problem.alpha, pointers.b, m_a.get(),
                                   pointers.a, m_b.get(), &beta, addend, m_d.get(), pointers.c, m_d.get(),
                                   &candidate.algo, workspace, candidate.workspaceSize, m_session.stream()),
        "multiply");
}

CublasLtProduct::Operation CublasLtProduct::makeOperation(const CublasLayout& layout) const {
  cublasLtMatmulDesc_t made = nullptr;
  const cublasComputeType_t compute = m_problem.isTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  check(m_session.library().createOperation(&made, compute, CUDA_R_32F), "describe a product");
  Operation operation(made, m_session.library().destroyOperation);
  set(operation, CUBLASLT_MATMUL_DESC_TRANSA, layout.isATransposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(operation, CUBLASLT_MATMUL_DESC_TRANSB, layout.isBTransposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogueOf(m_problem));
  if (const auto type = biasTypeOf(m_problem)) set(operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, typeOf(*type));
  if (m_problem.hasPreActivation) {
    set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, layout.d.leadingDimension);
    set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, typeOf(m_problem.cType));
  }
  if (m_problem.aCodes) setCodes(operation);
  setStandIns(operation);
  return operation;
}

CublasLtProduct::Layout CublasLtProduct::makeLayout(const ColumnMajor& matrix, cudaDataType_t type) const {
  cublasLtMatrixLayout_t layout = nullptr;
  check(m_session.library().createLayout(&layout, type, static_cast<std::uint64_t>(matrix.rows),
                                         static_cast<std::uint64_t>(matrix.cols), matrix.leadingDimension),
        "describe a matrix");
  return {layout, m_session.library().destroyLayout};
}

CublasLtProduct::Preference CublasLtProduct::makePreference() const {
  const CublasLt& library = m_session.library();
  cublasLtMatmulPreference_t made = nullptr;
  check(library.createPreference(&made), "make a preference");
  Preference preference(made, library.destroyPreference);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    check(library.setPreference(made, attribute, &value, sizeof(value)), "set a preference");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMaxWorkspaceBytes);
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductionsOf(m_problem.cType));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, m_problem.alignmentBytes);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, m_problem.alignmentBytes);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, m_problem.alignmentBytes);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, m_problem.alignmentBytes);
  return preference;
}

void CublasLtProduct::check(cublasStatus_t status, const char* action) const {
  checkBlas(m_session.library(), status, action);
}

template <class T>
void CublasLtProduct::set(const Operation& operation, cublasLtMatmulDescAttributes_t attribute, T value) const {
  check(m_session.library().setOperation(operation.get(), attribute, &value, sizeof(value)), "describe a product");
}

void CublasLtProduct::setCodes(const Operation& operation) const {
  set(operation, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, scaleModeOf(m_problem.bCodes->scaling));
  set(operation, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, scaleModeOf(m_problem.aCodes->scaling));
  set(operation, CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{m_problem.isFastAccumulated});
}

/// The search reads the pointers' alignment, not what they point to, and takes null for absent.
void CublasLtProduct::setStandIns(const Operation& operation) const {
  const void* const aligned = reinterpret_cast<const void*>(std::uintptr_t{m_problem.alignmentBytes});
  if (biasTypeOf(m_problem)) set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, aligned);
  if (m_problem.hasPreActivation) set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aligned);
  if (!m_problem.aCodes) return;
  set(operation, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, aligned);
  set(operation, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, aligned);
}

void CublasLtProduct::setPointers(const GemmPointers& pointers) {
  if (m_problem.hasBias) set(m_operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, pointers.bias);
  if (m_problem.biasGradType) set(m_operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, pointers.biasGrad);
  if (m_problem.hasPreActivation) set(m_operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, pointers.preActivation);
  if (!m_problem.aCodes) return;
  set(m_operation, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, pointers.bScales);
  set(m_operation, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, pointers.aScales);
}

}  // namespace fuseline::cuda
