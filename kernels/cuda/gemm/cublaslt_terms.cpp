// From row-major to column-major, and from the house's names to the library's.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/cublaslt_terms.h"

namespace fuseline::cuda {

namespace {

cudaDataType_t typeOf(DType dtype) {
  if (dtype == DType::F16) return CUDA_R_16F;
  return dtype == DType::BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

cudaDataType_t typeOf(const std::optional<FactorCodes>& codes, DType dtype) {
  if (!codes) return typeOf(dtype);
  switch (codes->format) {
    case ElementFormat::E4M3: break;
    case ElementFormat::E5M2: return CUDA_R_8F_E5M2;
    case ElementFormat::E2M1: return CUDA_R_4F_E2M1;
  }
  return CUDA_R_8F_E4M3;
}

cublasLtMatmulMatrixScale_t scaleModeOf(Scaling scaling) {
  switch (scaling) {
    case Scaling::Block1x128: return CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
    case Scaling::Block128x128: return CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
    case Scaling::Mx1x32:
    case Scaling::Mx32x32: return CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
    case Scaling::Nv1x16:
    case Scaling::Nv16x16:
    case Scaling::NvRow1x16: return CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3;
    case Scaling::PerTensor: break;
  }
  return CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
}

/// Type of the bias, or of its gradient; nothing: the epilogue has no vector.
std::optional<cudaDataType_t> biasTypeOf(const GemmProblem& problem) {
  if (problem.hasBias) return typeOf(problem.cType);
  return problem.biasGradType ? std::optional(typeOf(*problem.biasGradType)) : std::nullopt;
}

/// The library has no float32 C next to an FP8 D; no such D has an addend.
cudaDataType_t addendTypeOf(const GemmProblem& problem) {
  return problem.cFormat && problem.cType == DType::F32 ? CUDA_R_16BF : typeOf(problem.cType);
}

cudaDataType_t resultTypeOf(const GemmProblem& problem) {
  const auto codes = problem.cFormat ? std::optional(FactorCodes{.format = *problem.cFormat}) : std::nullopt;
  return typeOf(codes, problem.cType);
}

/// Is the input of GELU a separate matrix?
bool hasGeluInput(const GemmProblem& problem) { return problem.hasPreActivation || problem.hasGeluGrad; }

/// The library's B is our a, which a bias gradient sums over k.
cublasLtEpilogue_t epilogueOf(const GemmProblem& problem) {
  if (problem.biasGradType) return CUBLASLT_EPILOGUE_BGRADB;
  if (problem.hasGeluGrad) return CUBLASLT_EPILOGUE_DGELU;
  const bool hasBias = problem.hasBias;
  switch (problem.activation) {
    case GemmActivation::None: break;
    case GemmActivation::Relu: return hasBias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case GemmActivation::Gelu:
      if (problem.hasPreActivation) return hasBias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
      return hasBias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  }
  return hasBias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

std::optional<cublasLtMatmulMatrixScale_t> scaleModeOf(const std::optional<FactorCodes>& codes) {
  return codes ? std::optional(scaleModeOf(codes->scaling)) : std::nullopt;
}

}  // namespace

CublasLtTerms termsOf(const GemmProblem& problem) {
  return {.layout = layoutOf(problem),
          .compute = problem.isTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
          .aType = typeOf(problem.bCodes, problem.factorType),
          .bType = typeOf(problem.aCodes, problem.factorType),
          .cType = addendTypeOf(problem),
          .dType = resultTypeOf(problem),
          .epilogue = epilogueOf(problem),
          .biasType = biasTypeOf(problem),
          .hasAux = hasGeluInput(problem),
          .auxType = hasGeluInput(problem) ? std::optional(typeOf(problem.cType)) : std::nullopt,
          .aScaleMode = scaleModeOf(problem.bCodes),
          .bScaleMode = scaleModeOf(problem.aCodes),
          .isFastAccumulated = problem.isFastAccumulated,
          .pointerMode = isScaledOnDevice(problem) ? CUBLASLT_POINTER_MODE_DEVICE : CUBLASLT_POINTER_MODE_HOST,
          .hasResultScale = problem.cFormat.has_value(),
          .alignmentBytes = problem.alignmentBytes};
}

}  // namespace fuseline::cuda
