// A GEMM's description passed to cuBLASLt. Needs no GPU.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/cublaslt_product.h"
#include "kernels/cuda/support/check.h"
#include "tests/kernels/cuda_toolkit/told_library.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

class CublasLtProducts : public ::testing::Test {
 protected:
  void SetUp() override { attributes().clear(); }

  CublasLtProduct productOf(const GemmProblem& problem) { return {m_session, problem}; }

 private:
  CublasLtSession m_session{writingDown(), nullptr};
};

/// Forward of a linear layer: x [32, 64], W [48, 64].
constexpr GemmProblem kForward{
    .m = 32, .n = 48, .k = 64, .b = Storage2d::Transposed, .factorType = DType::BF16, .cType = DType::BF16};

TEST_F(CublasLtProducts, SayWhichEpilogueTheyWant) {
  struct Case {
    GemmActivation activation;
    bool hasBias, hasPreActivation;
    cublasLtEpilogue_t epilogue;
  };
  for (const Case& each : {Case{GemmActivation::None, false, false, CUBLASLT_EPILOGUE_DEFAULT},
                           {GemmActivation::None, true, false, CUBLASLT_EPILOGUE_BIAS},
                           {GemmActivation::Relu, false, false, CUBLASLT_EPILOGUE_RELU},
                           {GemmActivation::Relu, true, false, CUBLASLT_EPILOGUE_RELU_BIAS},
                           {GemmActivation::Gelu, false, false, CUBLASLT_EPILOGUE_GELU},
                           {GemmActivation::Gelu, true, false, CUBLASLT_EPILOGUE_GELU_BIAS},
                           {GemmActivation::Gelu, false, true, CUBLASLT_EPILOGUE_GELU_AUX},
                           {GemmActivation::Gelu, true, true, CUBLASLT_EPILOGUE_GELU_AUX_BIAS}}) {
    GemmProblem problem = kForward;
    problem.hasBias = each.hasBias;
    problem.activation = each.activation;
    problem.hasPreActivation = each.hasPreActivation;
    productOf(problem);
    EXPECT_EQ(toldEpilogue(), each.epilogue);
  }
}

/// The library's D is c, column by column: a row of c is a column of D. cublasLt.h requires the leading dimension in
/// elements; the search deduces alignment from pointers that it does not dereference.
TEST_F(CublasLtProducts, DescribeWhereThePreActivationGoes) {
  GemmProblem problem = kForward;
  problem.activation = GemmActivation::Gelu;
  problem.hasPreActivation = true;
  CublasLtProduct product = productOf(problem);
  EXPECT_EQ(told<std::int64_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD), 48);
  EXPECT_EQ(told<cudaDataType_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE), CUDA_R_16BF);
  const auto standIn = reinterpret_cast<std::uintptr_t>(toldPointer(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER));
  EXPECT_EQ(standIn, problem.alignmentBytes);

  std::byte memory{};
  product.multiply({}, {.preActivation = &memory}, nullptr, nullptr);
  EXPECT_EQ(toldPointer(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER), &memory);
}

/// dW [48, 64] = dy^T x: the library's B is dy, whose sums over the 32 rows have one element per column of its D.
TEST_F(CublasLtProducts, SumTheGradientOfABiasOverTheRows) {
  const GemmProblem problem{.m = 48,
                            .n = 64,
                            .k = 32,
                            .a = Storage2d::Transposed,
                            .factorType = DType::F16,
                            .cType = DType::F16,
                            .biasGradType = DType::F16};
  CublasLtProduct product = productOf(problem);
  EXPECT_EQ(toldEpilogue(), CUBLASLT_EPILOGUE_BGRADB);
  EXPECT_EQ(told<cudaDataType_t>(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE), CUDA_R_16F);
  EXPECT_NE(toldPointer(CUBLASLT_MATMUL_DESC_BIAS_POINTER), nullptr);

  std::byte memory{};
  product.multiply({}, {.biasGrad = &memory}, nullptr, nullptr);
  EXPECT_EQ(toldPointer(CUBLASLT_MATMUL_DESC_BIAS_POINTER), &memory);
}

/// dx [32, 48] = dy [32, 64] W [64, 48], times the slope of GELU at x [32, 48]: the same matrix as that which forward
/// writes, but read.
TEST_F(CublasLtProducts, SayWhereTheInputOfGeluIsRead) {
  const GemmProblem problem{
      .m = 32, .n = 48, .k = 64, .factorType = DType::BF16, .cType = DType::BF16, .hasGeluGrad = true};
  CublasLtProduct product = productOf(problem);
  EXPECT_EQ(toldEpilogue(), CUBLASLT_EPILOGUE_DGELU);
  EXPECT_EQ(told<std::int64_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD), 48);
  EXPECT_EQ(told<cudaDataType_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE), CUDA_R_16BF);
  EXPECT_NE(toldPointer(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER), nullptr);
  EXPECT_FALSE(attributes().contains(CUBLASLT_MATMUL_DESC_BIAS_POINTER));
  EXPECT_EQ(product.workspaceBytes({}), kEpilogueBytes);

  const std::byte memory{};
  product.multiply({}, {.geluInput = &memory}, nullptr, nullptr);
  EXPECT_EQ(toldPointer(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER), &memory);
}

/// The scale of a tensor in NVFP4 is known on the device only.
TEST_F(CublasLtProducts, SayThatFactorsOfFp4LieOnTheDevice) {
  GemmProblem problem = kForward;
  productOf(problem);
  EXPECT_FALSE(attributes().contains(CUBLASLT_MATMUL_DESC_POINTER_MODE));
  problem.aCodes = problem.bCodes = FactorCodes{.format = ElementFormat::E2M1, .scaling = Scaling::Nv1x16};
  productOf(problem);
  EXPECT_EQ(told<cublasLtPointerMode_t>(CUBLASLT_MATMUL_DESC_POINTER_MODE), CUBLASLT_POINTER_MODE_DEVICE);
  EXPECT_EQ(told<cublasLtMatmulMatrixScale_t>(CUBLASLT_MATMUL_DESC_A_SCALE_MODE),
            CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3);
}

/// The library may refuse an offered algorithm at the launch.
TEST(CublasLtLaunch, GoesOnToTheNextCandidateUntilOneIsTaken) {
  static std::vector<std::size_t> tried;
  static cublasStatus_t refusal;
  tried.clear();
  CublasLt library = writingDown();
  library.matmul = [](cublasLtHandle_t, cublasLtMatmulDesc_t, const void*, const void*, cublasLtMatrixLayout_t,
                      const void*, cublasLtMatrixLayout_t, const void*, const void*, cublasLtMatrixLayout_t, void*,
                      cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t*, void*, std::size_t workspaceBytes,
                      cudaStream_t) {
    tried.push_back(workspaceBytes);
    return workspaceBytes == 2 ? CUBLAS_STATUS_SUCCESS : refusal;
  };
  const CublasLtSession session(library, nullptr);
  CublasLtProduct product(session, kForward);
  std::vector<CublasLtCandidate> candidates(4);
  for (std::size_t i = 0; i < candidates.size(); ++i) candidates[i].workspaceSize = i;
  refusal = CUBLAS_STATUS_NOT_SUPPORTED;
  EXPECT_EQ(product.multiplyByFirst(candidates, {}, nullptr, nullptr), 2u);
  EXPECT_EQ(tried, (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_THROW(product.multiplyByFirst(std::span(candidates).first(2), {}, nullptr, nullptr), DeviceFault);
  refusal = CUBLAS_STATUS_EXECUTION_FAILED;  // there is no use in trying another
  tried.clear();
  EXPECT_THROW(product.multiplyByFirst(candidates, {}, nullptr, nullptr), DeviceFault);
  EXPECT_EQ(tried.size(), 1u);
}

/// Attributes of epilogues that are not there stay at the library's defaults.
TEST_F(CublasLtProducts, SayNothingOfWhatTheyDoNotHave) {
  productOf(kForward);
  EXPECT_FALSE(attributes().contains(CUBLASLT_MATMUL_DESC_BIAS_POINTER));
  EXPECT_FALSE(attributes().contains(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER));
  EXPECT_EQ(productOf(kForward).workspaceBytes({}), 0u);
  GemmProblem activated = kForward;
  activated.activation = GemmActivation::Gelu;
  EXPECT_EQ(productOf(activated).workspaceBytes({}), kEpilogueBytes);
}

/// An older library does not know every attribute: the caller may do without the epilogue.
TEST(CublasLtDescription, IsRefusedInTheWordsOfTheLibrary) {
  CublasLt library = writingDown();
  library.statusString = [](cublasStatus_t) { return "CUBLAS_STATUS_INVALID_VALUE"; };
  library.setOperation = [](cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t attribute, const void*, std::size_t) {
    return attribute == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
  };
  const CublasLtSession session(library, nullptr);
  EXPECT_TRUE(describeProduct(session, kForward, termsOf(kForward)));
  GemmProblem gelu = kForward;
  gelu.activation = GemmActivation::Gelu;
  gelu.hasPreActivation = true;
  const auto refused = describeProduct(session, gelu, termsOf(gelu));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "cuBLASLt could not describe a product: CUBLAS_STATUS_INVALID_VALUE.");
}

/// Descriptors need no GPU: the library itself says whether attributes have the size that it expects.
TEST(CublasLt, TakesTheDescriptionOfEveryEpilogue) {
  Result<CublasLt> library = loadCublasLt();
  if (!library) GTEST_SKIP() << library.error().message;
  library->create = writingDown().create;
  library->destroy = writingDown().destroy;
  const CublasLtSession session(*library, nullptr);
  GemmProblem gelu = kForward;
  gelu.activation = GemmActivation::Gelu;
  gelu.hasBias = gelu.hasPreActivation = true;
  GemmProblem biasGrad = kForward;
  biasGrad.biasGradType = DType::BF16;
  GemmProblem geluGrad = kForward;
  geluGrad.hasGeluGrad = true;
  for (const GemmProblem& problem : {kForward, gelu, biasGrad, geluGrad})
    EXPECT_NO_THROW(CublasLtProduct(session, problem));
}

}  // namespace
}  // namespace fuseline::cuda
