// Looks up cuBLASLt's functions by their names.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/cublaslt.h"

#include "kernels/cuda/support/shared_library.h"

namespace fuseline::cuda {

namespace {

void bind(Symbols& symbols, CublasLt& found) {
  symbols.find(found.create, "cublasLtCreate");
  symbols.find(found.destroy, "cublasLtDestroy");
  symbols.find(found.version, "cublasLtGetVersion");
  symbols.find(found.statusString, "cublasLtGetStatusString");
  symbols.find(found.createOperation, "cublasLtMatmulDescCreate");
  symbols.find(found.destroyOperation, "cublasLtMatmulDescDestroy");
  symbols.find(found.setOperation, "cublasLtMatmulDescSetAttribute");
  symbols.find(found.createLayout, "cublasLtMatrixLayoutCreate");
  symbols.find(found.destroyLayout, "cublasLtMatrixLayoutDestroy");
  symbols.find(found.setLayout, "cublasLtMatrixLayoutSetAttribute");
  symbols.find(found.createPreference, "cublasLtMatmulPreferenceCreate");
  symbols.find(found.destroyPreference, "cublasLtMatmulPreferenceDestroy");
  symbols.find(found.setPreference, "cublasLtMatmulPreferenceSetAttribute");
  symbols.find(found.heuristic, "cublasLtMatmulAlgoGetHeuristic");
  symbols.find(found.checkAlgorithm, "cublasLtMatmulAlgoCheck");
  symbols.find(found.matmul, "cublasLtMatmul");
  symbols.findIfThere(found.createGroupedLayout, "cublasLtGroupedMatrixLayoutCreate");
}

}  // namespace

Result<CublasLt> loadCublasLt() { return loadFunctions<CublasLt>("libcublasLt.so", CUBLAS_VER_MAJOR, bind); }

}  // namespace fuseline::cuda
