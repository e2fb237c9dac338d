// The rules of cublasLt.h for CUBLASLT_MATMUL_DESC_EPILOGUE and its attributes.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/gemm_epilogue.h"

#include <cstdint>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

/// Preferences tell the library the alignment of matrices. It deduces the alignment of a bias from its address, but not
/// all of its kernels do.
constexpr std::uint32_t kBiasAlignment = 16;

Verdict fitsBiasGrad(const GemmProblem& problem) {
  if (problem.hasBias || problem.activation != GemmActivation::None)
    return Verdict::no("cuBLASLt cannot combine a bias gradient with a bias or an activation.");
  if (*problem.biasGradType != problem.cType)
    return Verdict::no(fmt::format("cuBLASLt computes a bias gradient in the dtype of the result, {}, not in {}.",
                                   dtypeName(problem.cType), dtypeName(*problem.biasGradType)));
  // NVIDIA's nvmath-python refuses these.
  if (problem.m < 2 || problem.n < 2) return Verdict::no("cuBLASLt computes no bias gradient for vectors.");
  return Verdict::yes();
}

Verdict fitsPreActivation(const GemmProblem& problem) {
  if (problem.activation != GemmActivation::Gelu)
    return Verdict::no("cuBLASLt stores the input of GELU, but only one bit per element of ReLU.");
  if (problem.n % kPreActivationColumns == 0) return Verdict::yes();
  return Verdict::no(fmt::format("cuBLASLt stores the input of GELU in rows of multiples of {} elements, not of {}.",
                                 kPreActivationColumns, problem.n));
}

Verdict fitsGeluGrad(const GemmProblem& problem) {
  if (problem.hasBias || problem.activation != GemmActivation::None || problem.biasGradType)
    return Verdict::no("cuBLASLt cannot combine the gradient of GELU with a bias or an activation.");
  // NVIDIA's nvmath-python refuses these.
  if (problem.k < 2) return Verdict::no("cuBLASLt computes no gradient of GELU for vectors.");
  if (problem.n % kPreActivationColumns == 0) return Verdict::yes();
  return Verdict::no(fmt::format("cuBLASLt reads the input of GELU in rows of multiples of {} elements, not of {}.",
                                 kPreActivationColumns, problem.n));
}

/// Source: cublasLtMatmul's table of FP8 GEMMs; TransformerEngine requests no other ones.
Verdict fitsQuantized(const GemmProblem& problem) {
  const bool isOfTensors =
      problem.aCodes && problem.aCodes->scaling == Scaling::PerTensor && problem.bCodes->scaling == Scaling::PerTensor;
  if (!isOfTensors) return Verdict::no("cuBLASLt quantizes the result of FP8 factors with one scale each only.");
  const bool isPlain = !problem.hasAddend && !problem.hasPreActivation && !problem.hasGeluGrad && !problem.biasGradType;
  if (!isPlain || problem.activation != GemmActivation::None)
    return Verdict::no("A quantized result has no other epilogue than a bias.");
  if (problem.hasBias && problem.cType == DType::F32)
    return Verdict::no("cuBLASLt adds no f32 bias to a quantized result.");
  return Verdict::yes();
}

bool hasBlocksOf128(const std::optional<FactorCodes>& codes) {
  return codes && (codes->scaling == Scaling::Block1x128 || codes->scaling == Scaling::Block128x128);
}

/// 13.1.0, on an H100: GELU and ReLU, with and without a bias, agree with the reference in bf16 and f16.
constexpr std::size_t kProvenForBlocksOf128 = 130100;

}  // namespace

bool hasEpilogue(const GemmProblem& problem) {
  return problem.hasBias || problem.biasGradType || problem.hasGeluGrad || problem.activation != GemmActivation::None;
}

Verdict fitsEpilogue(const GemmProblem& problem) {
  if (hasEpilogue(problem) && problem.k == 0)
    return Verdict::no("The GEMM has an inner dimension of 0, for which cuBLASLt has no epilogues.");
  if (problem.hasBias && problem.alignmentBytes < kBiasAlignment)
    return Verdict::no(fmt::format("The bias begins at a multiple of {} bytes; some of cuBLASLt's kernels read {}.",
                                   problem.alignmentBytes, kBiasAlignment));
  if (problem.cFormat) return fitsQuantized(problem);
  if (problem.hasGeluGrad) return fitsGeluGrad(problem);
  if (problem.biasGradType) return fitsBiasGrad(problem);
  return problem.hasPreActivation ? fitsPreActivation(problem) : Verdict::yes();
}

Verdict isEpilogueProven(const GemmProblem& problem, std::size_t version) {
  const bool isActivated = problem.activation != GemmActivation::None;
  if (!hasBlocksOf128(problem.aCodes) && !hasBlocksOf128(problem.bCodes)) return Verdict::yes();
  if (problem.hasGeluGrad)
    return Verdict::no("cuBLASLt's gradient of GELU with FP8 in blocks of 128 has not been verified on a GPU.");
  if (isActivated && problem.cType == DType::F32)
    return Verdict::no("cuBLASLt's f32 activations with FP8 in blocks of 128 have not been verified on a GPU.");
  if (isActivated && version < kProvenForBlocksOf128)
    return Verdict::no(
        fmt::format("cuBLASLt's activations with FP8 in blocks of 128 have been verified from 13.1 on; this is {}.{}.",
                    version / 10000, version / 100 % 100));
  return Verdict::yes();
}

}  // namespace fuseline::cuda
