// The rules of cublasLt.h for CUBLASLT_MATMUL_DESC_EPILOGUE and what belongs to it.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm_epilogue.h"

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

Verdict fitsBiasGrad(const GemmProblem& problem) {
  if (problem.hasBias) return Verdict::no("cuBLASLt does not add a bias where it makes the gradient of one.");
  if (*problem.biasGradType != problem.cType)
    return Verdict::no(fmt::format("cuBLASLt makes a bias gradient in the dtype of the result, {}, not in {}.",
                                   dtypeName(problem.cType), dtypeName(*problem.biasGradType)));
  // NVIDIA's nvmath-python refuses these.
  if (problem.m < 2 || problem.n < 2) return Verdict::no("cuBLASLt makes no bias gradient of vectors.");
  return Verdict::yes();
}

}  // namespace

bool hasEpilogue(const GemmProblem& problem) { return problem.hasBias || problem.biasGradType; }

Verdict fitsEpilogue(const GemmProblem& problem) {
  if (hasEpilogue(problem) && problem.k == 0)
    return Verdict::no("The product adds nothing up, which is not what cuBLASLt has epilogues for.");
  return problem.biasGradType ? fitsBiasGrad(problem) : Verdict::yes();
}

}  // namespace fuseline::cuda
