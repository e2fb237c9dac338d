// Every algorithm of cuBLASLt that fits a GEMM, for comparison with the chosen one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/gemm/cublaslt_product.h"

#include <cstdint>
#include <vector>

namespace fuseline::cuda {

/// The functions of cuBLASLt that only a search needs.
struct SearchFunctions {
  decltype(cublasLtMatmulAlgoGetIds)* ids = nullptr;
  decltype(cublasLtMatmulAlgoInit)* init = nullptr;
  decltype(cublasLtMatmulAlgoCapGetAttribute)* capability = nullptr;
  decltype(cublasLtMatmulAlgoConfigSetAttribute)* configure = nullptr;
};

/// Errors: the library or one of the functions is missing; a sentence with the next step.
Result<SearchFunctions> loadSearchFunctions();

struct SearchResult {
  std::vector<CublasLtCandidate> accepted;
  std::uint64_t numConfigurations = 0;
  std::uint64_t numChecked = 0;
};

/// Asks the library about every configuration of every algorithm for these types: tiles, stages, custom options,
/// swizzling, small splits of the contraction, added up in float32, and usual shapes of clusters. Beyond maxChecks a
/// part of them that is spread over all.
SearchResult searchAlgorithms(const CublasLtProduct& product, const SearchFunctions& functions,
                              std::uint64_t maxChecks);

}  // namespace fuseline::cuda
