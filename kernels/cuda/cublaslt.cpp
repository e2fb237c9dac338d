// Looks up cuBLASLt's functions by their names.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cublaslt.h"

#include "kernels/cuda/shared_library.h"

#include <fmt/format.h>

namespace fuseline::cuda {

Result<CublasLt> loadCublasLt() {
  const std::string fileName = fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR);
  const Result<void*> library = openLibrary(fileName);
  if (!library) return library.error();
  Symbols symbols(*library);
  CublasLt found;
  symbols.find(found.create, "cublasLtCreate");
  symbols.find(found.destroy, "cublasLtDestroy");
  symbols.find(found.version, "cublasLtGetVersion");
  symbols.find(found.statusString, "cublasLtGetStatusString");
  symbols.find(found.createOperation, "cublasLtMatmulDescCreate");
  symbols.find(found.destroyOperation, "cublasLtMatmulDescDestroy");
  symbols.find(found.setOperation, "cublasLtMatmulDescSetAttribute");
  symbols.find(found.createLayout, "cublasLtMatrixLayoutCreate");
  symbols.find(found.destroyLayout, "cublasLtMatrixLayoutDestroy");
  symbols.find(found.createPreference, "cublasLtMatmulPreferenceCreate");
  symbols.find(found.destroyPreference, "cublasLtMatmulPreferenceDestroy");
  symbols.find(found.setPreference, "cublasLtMatmulPreferenceSetAttribute");
  symbols.find(found.heuristic, "cublasLtMatmulAlgoGetHeuristic");
  symbols.find(found.checkAlgorithm, "cublasLtMatmulAlgoCheck");
  symbols.find(found.matmul, "cublasLtMatmul");
  if (symbols.missing().empty()) return found;
  return Error{fmt::format("{} has no function {}; it is not the cuBLASLt of CUDA {}. Install that one.", fileName,
                           symbols.missing(), CUBLAS_VER_MAJOR),
               ErrorKind::RunFailed};
}

}  // namespace fuseline::cuda
