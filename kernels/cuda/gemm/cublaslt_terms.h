// A GEMM in the terms of cuBLASLt: the values of its descriptors' attributes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/gemm/gemm.h"
#include "kernels/cuda/gemm/gemm_layout.h"

#include <cublasLt.h>

#include <cstdint>
#include <optional>

namespace fuseline::cuda {

/// D = epilogue(op(A) op(B) + C). Absent fields keep the library's defaults.
struct CublasLtTerms {
  CublasLayout layout;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType_t aType = CUDA_R_32F;
  cudaDataType_t bType = CUDA_R_32F;
  cudaDataType_t cType = CUDA_R_32F;
  cudaDataType_t dType = CUDA_R_32F;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  std::optional<cudaDataType_t> biasType = std::nullopt;  // of the bias, or of its gradient
  bool hasAux = false;                                    // the epilogue writes or reads a matrix in addition to D
  std::optional<cudaDataType_t> auxType = std::nullopt;
  std::optional<cublasLtMatmulMatrixScale_t> aScaleMode = std::nullopt;  // of quantized factors
  std::optional<cublasLtMatmulMatrixScale_t> bScaleMode = std::nullopt;
  bool isFastAccumulated = false;
  cublasLtPointerMode_t pointerMode = CUBLASLT_POINTER_MODE_HOST;
  bool hasResultScale = false;  // of a quantized D: its scale is read, and the amax before scaling is written
  std::uint32_t alignmentBytes = 64;
};

/// The factors are swapped: A is b.
CublasLtTerms termsOf(const GemmProblem& problem);

}  // namespace fuseline::cuda
