// Questions to the library when it is probed, and the results from its answers. Needs no GPU.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/cublaslt_probe.h"
#include "tests/kernels/cuda_toolkit/told_library.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>

namespace fuseline::cuda {
namespace {

/// One call of the heuristic: the attributes, and the types of A, B, C and D.
struct Question {
  std::map<cublasLtMatmulDescAttributes_t, std::vector<std::byte>> attributes;
  std::vector<cudaDataType_t> types;

  bool has(cublasLtMatmulDescAttributes_t attribute) const { return attributes.contains(attribute); }
  std::int32_t value(cublasLtMatmulDescAttributes_t attribute) const {
    std::int32_t value = 0;
    std::memcpy(&value, attributes.at(attribute).data(), sizeof(value));
    return value;
  }
};

std::vector<Question>& questions() {
  static std::vector<Question> asked;
  return asked;
}

std::vector<cudaDataType_t>& types() {
  static std::vector<cudaDataType_t> told;
  return told;
}

/// Has everything but bias gradients of A.
CublasLt answering() {
  CublasLt library = writingDown();
  library.createOperation = [](cublasLtMatmulDesc_t* made, cublasComputeType_t, cudaDataType_t) {
    attributes().clear();
    types().clear();
    return makeNothing(made);
  };
  library.createLayout = [](cublasLtMatrixLayout_t* made, cudaDataType_t type, std::uint64_t, std::uint64_t,
                            std::int64_t) {
    types().push_back(type);
    return makeNothing(made);
  };
  library.createPreference = [](cublasLtMatmulPreference_t* made) { return makeNothing(made); };
  library.destroyPreference = [](cublasLtMatmulPreference_t) { return CUBLAS_STATUS_SUCCESS; };
  library.setPreference = [](cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, const void*,
                             std::size_t) { return CUBLAS_STATUS_SUCCESS; };
  library.heuristic = [](cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                         cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int,
                         cublasLtMatmulHeuristicResult_t* results, int* found) {
    questions().push_back({attributes(), types()});
    *found = 1;
    results->state = CUBLAS_STATUS_SUCCESS;
    return toldEpilogue() == CUBLASLT_EPILOGUE_BGRADA ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
  };
  return library;
}

/// Answers and the questions that they belong to, in the same order.
class CublasLtProbe : public ::testing::Test {
 protected:
  CublasLtProbe() {
    questions().clear();
    m_answers = probeProducts(CublasLtSession(answering(), nullptr));
  }

  const std::vector<ProductSupport>& answers() const { return m_answers; }

  const Question& question(const std::string& factors, const std::string& result, const std::string& epilogue) const {
    const auto found = std::ranges::find_if(m_answers, [&](const ProductSupport& each) {
      return each.factors == factors && each.result == result && each.epilogue == epilogue;
    });
    if (found == m_answers.end()) throw std::invalid_argument(factors + " to " + result + " with " + epilogue);
    return questions().at(static_cast<std::size_t>(found - m_answers.begin()));
  }

 private:
  std::vector<ProductSupport> m_answers;
};

TEST_F(CublasLtProbe, AsksEachQuestionOnce) {
  ASSERT_EQ(answers().size(), questions().size());
  std::set<std::tuple<std::string, std::string, std::string>> kinds;
  for (const ProductSupport& each : answers()) kinds.emplace(each.factors, each.result, each.epilogue);
  EXPECT_EQ(kinds.size(), answers().size());
}

TEST_F(CublasLtProbe, PassesTheAnswersOnWithTheLibrarysWords) {
  for (const ProductSupport& each : answers()) {
    EXPECT_EQ(static_cast<bool>(each.isSupported), each.epilogue != "BGRADA") << each.factors << ' ' << each.epilogue;
    EXPECT_EQ(each.isSupported.reason(), each.epilogue == "BGRADA" ? "no status" : "");
  }
}

TEST_F(CublasLtProbe, NamesTheFormatOfTheCodes) {
  const auto factors = [&](const char* name) {
    const std::vector<cudaDataType_t>& types = question(name, "bf16", "DEFAULT").types;
    return std::pair(types.at(0), types.at(1));
  };
  EXPECT_EQ(factors("e4m3 mx_1x32"), std::pair(CUDA_R_8F_E4M3, CUDA_R_8F_E4M3));
  EXPECT_EQ(factors("e5m2 per_tensor x e4m3 per_tensor"), std::pair(CUDA_R_8F_E4M3, CUDA_R_8F_E5M2));
  EXPECT_EQ(factors("e2m1 nv_1x16"), std::pair(CUDA_R_4F_E2M1, CUDA_R_4F_E2M1));
}

/// cublasLt.h: C of a GEMM with an FP8 result has 16 bits, and its scale and its amax have pointers. With quantized
/// factors the values of an epilogue have the type of the result, except for one case with half biases.
TEST_F(CublasLtProbe, DescribesAResultOfCodes) {
  const Question& asked = question("e4m3 per_tensor", "e4m3", "GELU_AUX_BIAS");
  EXPECT_EQ(asked.types, (std::vector{CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_8F_E4M3}));
  EXPECT_TRUE(asked.has(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER));
  EXPECT_TRUE(asked.has(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER));
  EXPECT_FALSE(asked.has(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE));
  EXPECT_FALSE(question("e4m3 per_tensor", "bf16", "DEFAULT").has(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER));
}

/// cublasLt.h: with quantized factors a bias never has 32 bits.
TEST_F(CublasLtProbe, GivesAResultOfFloatsABiasOf16Bits) {
  EXPECT_EQ(question("e4m3 per_tensor", "f32", "BIAS").value(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE), CUDA_R_16BF);
  EXPECT_EQ(question("f16", "f16", "BIAS").value(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE), CUDA_R_16F);
  EXPECT_FALSE(question("f16", "f16", "GELU").has(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE));
}

/// A mask of ReLU is bits, and has no type to set.
TEST_F(CublasLtProbe, DescribesWhatAnEpilogueReadsOrWritesBesides) {
  const Question& mask = question("bf16", "bf16", "DRELU");
  EXPECT_TRUE(mask.has(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER));
  EXPECT_EQ(mask.value(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD) % 128, 0);
  EXPECT_FALSE(mask.has(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE));
  EXPECT_EQ(question("f16", "f16", "DGELU_BGRAD").value(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE), CUDA_R_16F);
}

TEST_F(CublasLtProbe, NamesTheScaleModeOfEachFactor) {
  const auto modes = [&](const char* factors) {
    const Question& asked = question(factors, "bf16", "DEFAULT");
    return std::pair(asked.value(CUBLASLT_MATMUL_DESC_A_SCALE_MODE), asked.value(CUBLASLT_MATMUL_DESC_B_SCALE_MODE));
  };
  EXPECT_EQ(modes("e4m3 per_tensor").first, CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F);
  EXPECT_EQ(modes("e4m3 per_row").second, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
  EXPECT_EQ(modes("e4m3 mx_1x32").first, CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0);
  EXPECT_EQ(modes("e2m1 nv_1x16").first, CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3);
  // The library's A is our second factor.
  EXPECT_EQ(modes("e4m3 block_1x128 x e4m3 block_128x128"),
            std::pair(int{CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F}, int{CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F}));
  EXPECT_FALSE(question("bf16", "bf16", "DEFAULT").has(CUBLASLT_MATMUL_DESC_A_SCALE_MODE));
}

/// Hopper multiplies quantized factors in the order of a forward pass only; 16-bit factors have the order of each pass.
TEST_F(CublasLtProbe, AsksInTheOrderOfThePass) {
  const auto orders = [&](const char* factors, const char* epilogue) {
    const Question& asked = question(factors, "bf16", epilogue);
    return std::pair(asked.value(CUBLASLT_MATMUL_DESC_TRANSA), asked.value(CUBLASLT_MATMUL_DESC_TRANSB));
  };
  const auto pair = [](int a, int b) { return std::pair(a, b); };
  EXPECT_EQ(orders("bf16", "GELU"), pair(CUBLAS_OP_T, CUBLAS_OP_N));
  EXPECT_EQ(orders("bf16", "DGELU"), pair(CUBLAS_OP_N, CUBLAS_OP_N));
  EXPECT_EQ(orders("bf16", "BGRADB"), pair(CUBLAS_OP_N, CUBLAS_OP_T));
  for (const char* epilogue : {"GELU", "DGELU", "BGRADB"})
    EXPECT_EQ(orders("e4m3 per_tensor", epilogue), pair(CUBLAS_OP_T, CUBLAS_OP_N));
}

/// Descriptors need no GPU: the library itself says whether attributes have the size that it expects.
TEST(CublasLt, TakesTheDescriptionOfEveryQuestion) {
  Result<CublasLt> library = loadCublasLt();
  if (!library) GTEST_SKIP() << library.error().message;
  library->create = answering().create;
  library->destroy = answering().destroy;
  library->heuristic = [](cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                          cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int,
                          cublasLtMatmulHeuristicResult_t* results, int* found) {
    *found = 1;
    results->state = CUBLAS_STATUS_SUCCESS;
    return CUBLAS_STATUS_SUCCESS;
  };
  for (const ProductSupport& each : probeProducts(CublasLtSession(*library, nullptr)))
    EXPECT_TRUE(each.isSupported) << each.factors << ' ' << each.epilogue << ": " << each.isSupported.reason();
}

}  // namespace
}  // namespace fuseline::cuda
