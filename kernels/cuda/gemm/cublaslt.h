// The functions of cuBLASLt that the backend calls, found in the library at run time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"

#include <cublasLt.h>

namespace fuseline::cuda {

struct CublasLt {
  decltype(cublasLtCreate)* create = nullptr;
  decltype(cublasLtDestroy)* destroy = nullptr;
  decltype(cublasLtGetVersion)* version = nullptr;
  decltype(cublasLtGetStatusString)* statusString = nullptr;
  decltype(cublasLtMatmulDescCreate)* createOperation = nullptr;
  decltype(cublasLtMatmulDescDestroy)* destroyOperation = nullptr;
  decltype(cublasLtMatmulDescSetAttribute)* setOperation = nullptr;
  decltype(cublasLtMatrixLayoutCreate)* createLayout = nullptr;
  decltype(cublasLtMatrixLayoutDestroy)* destroyLayout = nullptr;
  decltype(cublasLtMatrixLayoutSetAttribute)* setLayout = nullptr;
  decltype(cublasLtMatmulPreferenceCreate)* createPreference = nullptr;
  decltype(cublasLtMatmulPreferenceDestroy)* destroyPreference = nullptr;
  decltype(cublasLtMatmulPreferenceSetAttribute)* setPreference = nullptr;
  decltype(cublasLtMatmulAlgoGetHeuristic)* heuristic = nullptr;
  decltype(cublasLtMatmulAlgoCheck)* checkAlgorithm = nullptr;
  decltype(cublasLtMatmul)* matmul = nullptr;
  /// Rows, columns and leading dimensions of each group: arrays on the device. Null: this version has no grouped GEMM,
  /// of which the oldest supported header knows nothing.
  cublasStatus_t (*createGroupedLayout)(cublasLtMatrixLayout_t* made, cudaDataType type, int count, const void* rows,
                                        const void* cols, const void* leadingDimensions) = nullptr;
};

/// Errors: the library or one of the functions is missing; a sentence with the next step.
Result<CublasLt> loadCublasLt();

}  // namespace fuseline::cuda
