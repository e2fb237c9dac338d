// A table of functions that replaces cuBLASLt and records the descriptions of GEMMs. Needs no GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/gemm/cublaslt.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include <gtest/gtest.h>

namespace fuseline::cuda {

/// The attributes of the one operation of a test.
inline std::map<cublasLtMatmulDescAttributes_t, std::vector<std::byte>>& attributes() {
  static std::map<cublasLtMatmulDescAttributes_t, std::vector<std::byte>> values;
  return values;
}

template <class T>
T told(cublasLtMatmulDescAttributes_t attribute) {
  const std::vector<std::byte>& bytes = attributes().at(attribute);
  EXPECT_EQ(bytes.size(), sizeof(T)) << attribute;
  T value{};
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof(T)));
  return value;
}

inline const void* toldPointer(cublasLtMatmulDescAttributes_t attribute) { return told<const void*>(attribute); }
inline cublasLtEpilogue_t toldEpilogue() { return told<cublasLtEpilogue_t>(CUBLASLT_MATMUL_DESC_EPILOGUE); }

template <class Descriptor>
cublasStatus_t makeNothing(Descriptor* made) {
  *made = nullptr;
  return CUBLAS_STATUS_SUCCESS;
}

inline CublasLt writingDown() {
  CublasLt library;
  library.create = [](cublasLtHandle_t* handle) { return makeNothing(handle); };
  library.destroy = [](cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; };
  library.statusString = [](cublasStatus_t) { return "no status"; };
  library.createOperation = [](cublasLtMatmulDesc_t* made, cublasComputeType_t, cudaDataType_t) {
    return makeNothing(made);
  };
  library.destroyOperation = [](cublasLtMatmulDesc_t) { return CUBLAS_STATUS_SUCCESS; };
  library.setOperation = [](cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t attribute, const void* value,
                            std::size_t sizeBytes) {
    const auto* const bytes = static_cast<const std::byte*>(value);
    attributes()[attribute].assign(bytes, bytes + sizeBytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  library.createLayout = [](cublasLtMatrixLayout_t* made, cudaDataType_t, std::uint64_t, std::uint64_t, std::int64_t) {
    return makeNothing(made);
  };
  library.destroyLayout = [](cublasLtMatrixLayout_t) { return CUBLAS_STATUS_SUCCESS; };
  library.matmul = [](cublasLtHandle_t, cublasLtMatmulDesc_t, const void*, const void*, cublasLtMatrixLayout_t,
                      const void*, cublasLtMatrixLayout_t, const void*, const void*, cublasLtMatrixLayout_t, void*,
                      cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t*, void*, std::size_t,
                      cudaStream_t) { return CUBLAS_STATUS_SUCCESS; };
  return library;
}

}  // namespace fuseline::cuda
