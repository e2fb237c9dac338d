// The epilogues that cuBLASLt can express at all. Whether it has an algorithm for one is determined on a GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/support/result.h"
#include "kernels/cuda/gemm/gemm.h"

namespace fuseline::cuda {

/// A row of the pre-activation has a multiple of this number of elements (cublasLt.h,
/// CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD).
inline constexpr std::int64_t kPreActivationColumns = 8;

/// Does the problem have more than alpha, the GEMM and the addend?
bool hasEpilogue(const GemmProblem& problem);

/// Whether the problem's epilogue can be described to the library; no has the reason, in its documentation's words.
Verdict fitsEpilogue(const GemmProblem& problem);

/// Whether the library's algorithm is known to be right: it has offered activations of FP8 GEMMs with blocks of 128
/// that TransformerEngine's tests found wrong, and so never uses. version: cublasLtGetVersion, 130100 for 13.1.0.
Verdict isEpilogueProven(const GemmProblem& problem, std::size_t version);

}  // namespace fuseline::cuda
