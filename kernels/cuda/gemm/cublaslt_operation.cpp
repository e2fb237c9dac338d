// Attributes of operations and preferences.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/cublaslt_operation.h"

#include "kernels/cuda/gemm/cublaslt_product.h"
#include "kernels/cuda/support/check.h"

#include <cstdint>
#include <initializer_list>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

Owned<cublasLtMatmulDescOpaque_t> createOperation(const CublasLt& library, const CublasLtTerms& terms) {
  cublasLtMatmulDesc_t made = nullptr;
  checkBlas(library, library.createOperation(&made, terms.compute, CUDA_R_32F), "describe a product");
  return {made, library.destroyOperation};
}

/// How partial sums of a split contraction may be added: in float32, never in a narrower dtype of the result.
std::uint32_t reductionsOf(cudaDataType_t resultType) {
  return resultType == CUDA_R_32F ? CUBLASLT_REDUCTION_SCHEME_MASK : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
}

}  // namespace

void checkBlas(const CublasLt& library, cublasStatus_t status, const char* action) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceFault(fmt::format("cuBLASLt could not {}: {}.", action, library.statusString(status)));
}

CublasLtOperation::CublasLtOperation(const CublasLtSession& session, const CublasLtTerms& terms)
    : m_library(session.library()), m_operation(createOperation(m_library, terms)) {
  set(CUBLASLT_MATMUL_DESC_TRANSA, terms.layout.isATransposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, terms.layout.isBTransposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, terms.epilogue);
  if (terms.biasType) set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, *terms.biasType);
  if (terms.hasAux) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, terms.layout.d.leadingDimension);
  if (terms.auxType) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, *terms.auxType);
  if (terms.aScaleMode) {
    set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, *terms.aScaleMode);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, *terms.bScaleMode);
    set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{terms.isFastAccumulated});
  }
  if (terms.pointerMode != CUBLASLT_POINTER_MODE_HOST) set(CUBLASLT_MATMUL_DESC_POINTER_MODE, terms.pointerMode);
  setStandIns(terms);
}

/// The search reads only the pointers' alignment, not their data, and takes null for absent.
void CublasLtOperation::setStandIns(const CublasLtTerms& terms) const {
  const void* const aligned = reinterpret_cast<const void*>(std::uintptr_t{terms.alignmentBytes});
  const auto setIf = [&](bool isThere, std::initializer_list<cublasLtMatmulDescAttributes_t> attributes) {
    if (!isThere) return;
    for (const cublasLtMatmulDescAttributes_t attribute : attributes) set(attribute, aligned);
  };
  setIf(terms.biasType.has_value(), {CUBLASLT_MATMUL_DESC_BIAS_POINTER});
  setIf(terms.hasAux, {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER});
  setIf(terms.aScaleMode.has_value(), {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER});
  setIf(terms.hasResultScale, {CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, CUBLASLT_MATMUL_DESC_AMAX_D_POINTER});
}

OwnedPreference makePreference(const CublasLt& library, const CublasLtTerms& terms) {
  cublasLtMatmulPreference_t made = nullptr;
  checkBlas(library, library.createPreference(&made), "make a preference");
  OwnedPreference preference(made, library.destroyPreference);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    checkBlas(library, library.setPreference(made, attribute, &value, sizeof(value)), "set a preference");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMaxWorkspaceBytes);
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductionsOf(terms.dType));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, terms.alignmentBytes);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, terms.alignmentBytes);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, terms.alignmentBytes);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, terms.alignmentBytes);
  return preference;
}

}  // namespace fuseline::cuda
