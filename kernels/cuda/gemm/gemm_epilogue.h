// What the epilogues of cuBLASLt can say at all. Which of these it has an algorithm for is asked where there is a GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"
#include "kernels/cuda/gemm/gemm.h"

namespace fuseline::cuda {

/// A row of the pre-activation has a multiple of so many elements (cublasLt.h, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD).
inline constexpr std::int64_t kPreActivationColumns = 8;

/// Is there anything besides alpha, the product and the addend?
bool hasEpilogue(const GemmProblem& problem);

/// Whether the problem's epilogue can be described to the library; no says why not, in the words of its documentation.
Verdict fitsEpilogue(const GemmProblem& problem);

/// Whether what the library offers is known to be right: it has offered activations of FP8 products with blocks of 128
/// that TransformerEngine's tests found wrong, and so never uses. version: cublasLtGetVersion, 130100 for 13.1.0.
Verdict isEpilogueProven(const GemmProblem& problem, std::size_t version);

}  // namespace fuseline::cuda
