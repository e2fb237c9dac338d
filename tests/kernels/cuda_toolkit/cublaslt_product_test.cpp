// What cuBLASLt is told of a product: a table of functions that write it down stands in its place. Needs no GPU.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cublaslt_product.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

/// The attributes of the one operation of a test.
std::map<cublasLtMatmulDescAttributes_t, std::vector<std::byte>>& attributes() {
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

const void* toldPointer(cublasLtMatmulDescAttributes_t attribute) { return told<const void*>(attribute); }
cublasLtEpilogue_t toldEpilogue() { return told<cublasLtEpilogue_t>(CUBLASLT_MATMUL_DESC_EPILOGUE); }

template <class Descriptor>
cublasStatus_t makeNothing(Descriptor* made) {
  *made = nullptr;
  return CUBLAS_STATUS_SUCCESS;
}

CublasLt writingDown() {
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
    Activation activation;
    bool hasBias, hasPreActivation;
    cublasLtEpilogue_t epilogue;
  };
  for (const Case& each : {Case{Activation::None, false, false, CUBLASLT_EPILOGUE_DEFAULT},
                           {Activation::None, true, false, CUBLASLT_EPILOGUE_BIAS},
                           {Activation::Relu, false, false, CUBLASLT_EPILOGUE_RELU},
                           {Activation::Relu, true, false, CUBLASLT_EPILOGUE_RELU_BIAS},
                           {Activation::Gelu, false, false, CUBLASLT_EPILOGUE_GELU},
                           {Activation::Gelu, true, false, CUBLASLT_EPILOGUE_GELU_BIAS},
                           {Activation::Gelu, false, true, CUBLASLT_EPILOGUE_GELU_AUX},
                           {Activation::Gelu, true, true, CUBLASLT_EPILOGUE_GELU_AUX_BIAS}}) {
    GemmProblem problem = kForward;
    problem.hasBias = each.hasBias;
    problem.activation = each.activation;
    problem.hasPreActivation = each.hasPreActivation;
    productOf(problem);
    EXPECT_EQ(toldEpilogue(), each.epilogue);
  }
}

/// The library's D is c, column by column: a row of c is a column of D. cublasLt.h wants the leading dimension in
/// elements; the search deduces alignment from pointers that it does not follow.
TEST_F(CublasLtProducts, DescribeWhereThePreActivationGoes) {
  GemmProblem problem = kForward;
  problem.activation = Activation::Gelu;
  problem.hasPreActivation = true;
  CublasLtProduct product = productOf(problem);
  EXPECT_EQ(told<std::int64_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD), 48);
  EXPECT_EQ(told<cudaDataType_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE), CUDA_R_16BF);
  const auto standIn = reinterpret_cast<std::uintptr_t>(toldPointer(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER));
  EXPECT_EQ(standIn, problem.alignmentBytes);

  std::byte memory{};
  product.multiply({}, {.preActivation = &memory}, nullptr);
  EXPECT_EQ(toldPointer(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER), &memory);
}

/// dW [48, 64] = dy^T x: the library's B is dy, whose sums over the 32 rows have one element a column of its D.
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
  product.multiply({}, {.biasGrad = &memory}, nullptr);
  EXPECT_EQ(toldPointer(CUBLASLT_MATMUL_DESC_BIAS_POINTER), &memory);
}

/// Attributes of epilogues that are not there stay at the library's defaults.
TEST_F(CublasLtProducts, SayNothingOfWhatTheyDoNotHave) {
  productOf(kForward);
  EXPECT_FALSE(attributes().contains(CUBLASLT_MATMUL_DESC_BIAS_POINTER));
  EXPECT_FALSE(attributes().contains(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER));
  EXPECT_EQ(productOf(kForward).workspaceBytes({}), 0u);
  GemmProblem activated = kForward;
  activated.activation = Activation::Gelu;
  EXPECT_EQ(productOf(activated).workspaceBytes({}), kEpilogueBytes);
}

/// Descriptors need no GPU: the library itself says whether attributes have the size that it expects.
TEST(CublasLt, TakesTheDescriptionOfEveryEpilogue) {
  Result<CublasLt> library = loadCublasLt();
  if (!library) GTEST_SKIP() << library.error().message;
  library->create = writingDown().create;
  library->destroy = writingDown().destroy;
  const CublasLtSession session(*library, nullptr);
  GemmProblem gelu = kForward;
  gelu.activation = Activation::Gelu;
  gelu.hasBias = gelu.hasPreActivation = true;
  GemmProblem biasGrad = kForward;
  biasGrad.biasGradType = DType::BF16;
  for (const GemmProblem& problem : {kForward, gelu, biasGrad}) EXPECT_NO_THROW(CublasLtProduct(session, problem));
}

}  // namespace
}  // namespace fuseline::cuda
